// One binary for all that a real node needs and upstream does not have, by the name it is called with.
//
// In containers it is `pause`, which holds a pod's namespaces, and `web`, an application that answers. On a
// node it is `pause` again, as PID 1, `runtime`, through which containerd runs runc, and `logind`, which tells
// the kubelet of a shutdown. Beside them it is `load`, which sends requests. It uses the standard library only.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	name := filepath.Base(os.Args[0])
	commands := map[string]func(){"load": load, "logind": logind, "pause": pause, "runtime": runtime, "web": web}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "called as %q: link this binary as load, logind, pause, runtime or web\n", name)
		os.Exit(2)
	}
	command()
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	os.Exit(1)
}
