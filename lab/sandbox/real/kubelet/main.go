// One binary that is kubelet and kube-proxy, by the name it is called with.
//
// The sandbox (lab/sandbox/real) builds it once and links it under each name. It runs upstream's own
// commands unchanged: nothing here decides how Kubernetes behaves.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	commands := map[string]func() *cobra.Command{
		"kubelet":    func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-proxy": kubeproxy.NewProxyCommand,
	}
	newCommand, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "called as %q: link this binary as kubelet or kube-proxy\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(newCommand()))
}
