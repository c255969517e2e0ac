//go:build integration

package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sequins/test/chart"
	"sequins/test/expect"
	"sequins/test/netns"
)

// A pod is one of a StatefulSet, with a host of its own. It is created once; another one takes its place when it is deleted.
type pod struct {
	c         *cluster
	name      string
	labels    map[string]string
	spec      chart.Pod
	container chart.Container // the only one
	host      *netns.Host
	dir       string
	volumes   map[string]*volume
	cgroups   []*cgroup
	log       expect.Output

	ready    atomic.Bool
	deleting atomic.Bool
	restarts atomic.Int64
	work     sync.WaitGroup

	mu      sync.Mutex
	cmd     *exec.Cmd
	changes []string // of ready
}

// newPod starts a pod: its init containers one after the other, then its container and its probes.
func (c *cluster) newPod(t testing.TB, name, zone string) *pod {
	t.Helper()
	p := &pod{c: c, name: name, labels: maps.Clone(c.set.Template.Metadata.Labels), spec: c.set.Template.Spec, host: netns.NewHost(t),
		dir: filepath.Join(c.dir, name+"-"+fmt.Sprint(time.Now().UnixNano())), volumes: map[string]*volume{}}
	p.labels["statefulset.kubernetes.io/pod-name"] = name
	p.labels["apps.kubernetes.io/pod-index"] = name[strings.LastIndex(name, "-")+1:]
	if c.labelsZones {
		p.labels["topology.kubernetes.io/zone"] = zone
	}
	if len(p.spec.Containers) != 1 {
		t.Fatalf("%d containers", len(p.spec.Containers))
	}
	p.container = p.spec.Containers[0]
	p.mount(t)
	t.Cleanup(func() {
		p.kill()
		for _, g := range p.cgroups {
			g.remove(t)
		}
		if t.Failed() {
			log := p.log.String()
			t.Logf("log of %s at %s, whose readiness was %v:\n%s", p.name, p.host.IP, p.changes, log[max(0, len(log)-20_000):])
		}
	})
	expect.NoError(t, p.launch(p.prepare(t, p.container)))
	return p
}

// backOff is the pause before a container is started for the third time and later. That of the kubelet is longer.
const backOff = time.Second

// launch starts the container, and probes it until it has ended; then it starts it again, until the pod is deleted.
func (p *pod) launch(file string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleting.Load() { // before signal, which waits for the lock
		return nil
	}
	cmd, err := p.start(file)
	if err != nil {
		return err
	}
	p.cmd = cmd
	ended := make(chan struct{})
	p.work.Go(func() { p.probe(ended) })
	p.work.Go(func() {
		_ = cmd.Wait() // the state says how it has ended
		close(ended)
		p.setReady(false, "the container has ended")
		fmt.Fprintf(&p.log, "%s: the container has ended: %v\n", p.name, cmd.ProcessState)
		if p.deleting.Load() {
			return
		}
		if p.restarts.Add(1) > 1 {
			<-time.After(backOff)
		}
		if err := p.launch(file); err != nil {
			fmt.Fprintf(&p.log, "%s: the container cannot be started again: %v\n", p.name, err)
		}
	})
	return nil
}

// prepare makes the root, the control group and the description of a container, and returns the file of the last.
func (p *pod) prepare(t testing.TB, c chart.Container) string {
	t.Helper()
	cg := newCgroup(t, c.Resources.Limits.Memory)
	p.cgroups = append(p.cgroups, cg)
	s := p.spec.SecurityContext
	b := box{Root: p.image(t, c), ReadOnly: c.SecurityContext.ReadOnlyRootFilesystem, Hostname: p.name, CgroupProcs: filepath.Join(cg.dir, "cgroup.procs"), CgroupV1: cg.v1,
		UID: s.RunAsUser, GID: s.RunAsGroup, Groups: []int{s.FSGroup}, KeepsCaps: !slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}),
		NewPrivs: c.SecurityContext.AllowPrivilegeEscalation, Dir: c.WorkingDir, Args: append([]string{entrypoint}, c.Args...), Env: p.environ(t, c)}
	if b.Dir == "" {
		b.Dir = "/"
	}
	for _, m := range c.VolumeMounts {
		v := p.volumes[m.Name]
		if v == nil {
			t.Fatalf("%s mounts %s, which is no volume", c.Name, m.Name)
		}
		b.Mounts = append(b.Mounts, mount{v.dir, m.MountPath, m.ReadOnly})
	}
	doc, err := json.Marshal(b)
	file := filepath.Join(p.dir, c.Name+".json")
	if err == nil {
		err = os.WriteFile(file, doc, 0o600)
	}
	expect.NoError(t, err)
	return file
}

// start starts a container from its description.
func (p *pod) start(file string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append(p.host.Prefix(), program)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), containerVariable+"="+file)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	runtime.LockOSThread()
	err = cmd.Start()
	runtime.UnlockOSThread()
	return cmd, err
}

// entrypoint is that of the image, which package release tests.
const entrypoint = "/usr/bin/sequins"

// image makes the root of a container: what packaging/image puts into the image, the files of the kubelet, and empty
// directories for mounts.
func (p *pod) image(t testing.TB, c chart.Container) string {
	t.Helper()
	root, err := os.MkdirTemp(p.dir, c.Name+"-root-")
	expect.NoError(t, err)
	dirs := []string{"usr/bin", "etc", "var/sequins", "tmp", "proc", "dev", "sys/fs/cgroup"}
	for _, m := range c.VolumeMounts {
		dirs = append(dirs, m.MountPath)
	}
	for _, dir := range dirs {
		expect.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	expect.NoError(t, os.Chmod(root, 0o755))
	for name, text := range map[string]string{
		"etc/passwd":      "sequins:x:65532:65532::/var/sequins:/sbin/nologin\n",
		"etc/group":       "sequins:x:65532:\n",
		"etc/hostname":    p.name + "\n",
		"etc/hosts":       fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s.%s.%s.svc.%s\t%s\n", p.host.IP, p.name, p.c.set.ServiceName, p.c.namespace, clusterDomain, p.name),
		"etc/resolv.conf": fmt.Sprintf("search %[1]s.svc.%[2]s svc.%[2]s %[2]s\nnameserver %[3]s\noptions ndots:5\n", p.c.namespace, clusterDomain, p.c.ips.dns),
	} {
		expect.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	expect.NoError(t, os.Link(p.c.program, filepath.Join(root, entrypoint)))
	return root
}

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// environ is the environment of a container, with the values that the kubelet finds.
func (p *pod) environ(t testing.TB, c chart.Container) []string {
	t.Helper()
	values := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": p.name,
		"KUBERNETES_SERVICE_HOST": p.c.ips.service, "KUBERNETES_SERVICE_PORT": "443"}
	if p.spec.EnableServiceLinks {
		t.Fatal("variables of services are not made here")
	}
	for _, e := range c.Env {
		switch ref := e.ValueFrom; {
		case ref.FieldRef.FieldPath != "":
			values[e.Name] = p.field(t, ref.FieldRef.FieldPath)
		case ref.SecretKeyRef.Name != "":
			values[e.Name] = p.c.secrets[ref.SecretKeyRef.Name][ref.SecretKeyRef.Key]
		default:
			values[e.Name] = reference.ReplaceAllStringFunc(e.Value, func(s string) string { return values[s[2:len(s)-1]] })
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
	}
	return all
}

// field is a field of the downward API. A label that is not there is empty.
func (p *pod) field(t testing.TB, path string) string {
	t.Helper()
	if label, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return p.labels[strings.TrimSuffix(label, "']")]
	}
	switch path {
	case "metadata.name":
		return p.name
	case "metadata.namespace":
		return p.c.namespace
	case "status.podIP":
		return p.host.IP
	case "spec.nodeName":
		return "node-of-" + p.name
	}
	t.Fatalf("the downward API has no %s", path)
	return ""
}

// terminate deletes the pod as the kubelet does: SIGTERM, and SIGKILL after the grace period. It returns how long that took.
func (p *pod) terminate(t testing.TB) time.Duration {
	t.Helper()
	began := time.Now()
	p.deleting.Store(true)
	p.signal(syscall.SIGTERM)
	gone := make(chan struct{})
	go func() {
		p.work.Wait()
		close(gone)
	}()
	grace := time.Duration(p.spec.TerminationGracePeriodSeconds) * time.Second
	select {
	case <-gone:
	case <-time.After(grace):
		t.Errorf("%s has not ended after its grace period, %s", p.name, grace)
		p.signal(syscall.SIGKILL)
		<-gone
	}
	p.mu.Lock()
	code := p.cmd.ProcessState.ExitCode()
	p.mu.Unlock()
	if code != 0 {
		t.Errorf("%s ends with exit code %d", p.name, code)
	}
	p.host.Close()
	return time.Since(began)
}

// signal sends a signal to the first process of the container. When that dies, so do all others.
func (p *pod) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // fails if it has ended
	}
}

// exec runs the program in the container, as kubectl exec does, with more variables, and returns what it prints.
func (p *pod) exec(t testing.TB, stdin string, env []string, args ...string) string {
	t.Helper()
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	s := p.spec.SecurityContext
	cmd := exec.CommandContext(t.Context(), "nsenter", append([]string{"--target", fmt.Sprint(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wd",
		"--setuid", fmt.Sprint(s.RunAsUser), "--setgid", fmt.Sprint(s.RunAsGroup), "--", entrypoint}, args...)...)
	cmd.Env, cmd.Stdin = append(p.environ(t, p.container), env...), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s in %s: %v\n%s", args, p.name, err, out)
	}
	return string(out)
}

// kill ends the pod at once.
func (p *pod) kill() {
	p.deleting.Store(true)
	p.signal(syscall.SIGKILL)
	p.work.Wait()
}
