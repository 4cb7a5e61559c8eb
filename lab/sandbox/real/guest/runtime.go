package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// runtime is runc for a user namespace: it takes out of a container's configuration what cannot be had there.
// No control group is delegated, and one user and one group are mapped.
func runtime() {
	if at := slices.Index(os.Args, "--bundle"); at > 0 && at+1 < len(os.Args) {
		if err := fit(filepath.Join(os.Args[at+1], "config.json")); err != nil {
			fail(err)
		}
	}
	runc, err := exec.LookPath("runc") // the first on the node's PATH
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(runc, append([]string{"runc"}, os.Args[1:]...), os.Environ()))
}

type object = map[string]any

func fit(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec object
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	if linux, ok := spec["linux"].(object); ok {
		delete(linux, "cgroupsPath")
		delete(linux, "resources")
	}
	if process, ok := spec["process"].(object); ok {
		if user, ok := process["user"].(object); ok {
			delete(user, "additionalGids")
		}
	}
	mounts, _ := spec["mounts"].([]any)
	mounts = slices.DeleteFunc(mounts, func(one any) bool { return one.(object)["type"] == "cgroup" })
	spec["mounts"] = mounts
	for _, one := range mounts {
		mount := one.(object)
		if options, ok := mount["options"].([]any); ok {
			mount["options"] = slices.DeleteFunc(options, func(option any) bool { return option == "gid=5" })
		}
	}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
