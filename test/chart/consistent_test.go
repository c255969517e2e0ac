//go:build integration

package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/config"
	"sequins/test/expect"
	"sequins/test/process"
)

// The objects of every rendering are consistent with sequins and with each other.
func TestConsistent(t *testing.T) {
	renderings, err := filepath.Glob(filepath.Join(process.Root(), "packaging", "kubernetes", "*.yaml"))
	if err != nil || len(renderings) != len(plain) {
		t.Fatalf("%v, %v", renderings, err)
	}
	all := map[string]string{}
	for _, file := range renderings {
		text, err := os.ReadFile(file)
		expect.NoError(t, err)
		all[filepath.Base(file)] = string(text)
	}
	for name, values := range matrix(t) {
		all[name] = template(t, "--values", values)
	}
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			objects, err := Parse(text)
			expect.NoError(t, err)
			meta, set, err := objects.StatefulSet()
			expect.NoError(t, err)
			if len(set.Template.Spec.Containers) != 1 || len(set.Template.Spec.Volumes) == 0 {
				t.Fatalf("%+v", set.Template.Spec)
			}
			r := rendering{objects, meta, set, set.Template.Spec, set.Template.Spec.Containers[0]}
			c := r.config(t)
			r.checkMounts(t, c)
			r.checkPorts(t, c)
			r.checkTimes(t, c)
			r.checkMemory(t, c)
			r.checkSelectors(t)
			r.checkSecurity(t)
		})
	}
}

type rendering struct {
	objects Objects
	meta    Meta
	set     StatefulSet
	pod     Pod
	c       Container
}

// config returns the configuration of pod 0, which sequins check-config accepts without a warning.
func (r *rendering) config(t *testing.T) config.Config {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	expect.NoError(t, os.WriteFile(conf, []byte(r.objects["ConfigMap/"+r.meta.Name].Data["sequins.conf"]), 0o644))
	cmd := exec.CommandContext(t.Context(), process.Binary(t), "check-config", conf)
	name := r.meta.Name + "-0"
	for _, e := range r.c.Env {
		switch ref := e.ValueFrom; {
		case ref.FieldRef.FieldPath == "metadata.name":
			e.Value = name
		case ref.FieldRef.FieldPath == "metadata.namespace":
			e.Value = "example"
		case strings.HasPrefix(ref.FieldRef.FieldPath, "metadata.labels['"):
			e.Value = "zone-a"
		case ref.SecretKeyRef.Name != "":
			e.Value = "secret"
		}
		t.Setenv(e.Name, strings.NewReplacer("$(POD_NAME)", name, "$(POD_NAMESPACE)", "example").Replace(e.Value))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("check-config: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		// There are Secrets only in a cluster, and fewer pods than replicas only until it has been scaled up.
		ofTheCluster := regexp.MustCompile(`^warning: (a file cannot be checked here: .* /(etc/sequins-secrets|var/run/sequins)/|.*: sharding.min_nodes: 1 nodes cannot hold )`)
		if strings.HasPrefix(line, "warning") && !ofTheCluster.MatchString(line) {
			t.Error(line)
		}
	}
	c, _, err := config.Load(conf)
	expect.NoError(t, err)
	return c
}

// checkMounts checks that sequins finds its configuration, its store and its secrets, and that nothing is mounted in vain.
func (r *rendering) checkMounts(t *testing.T, c config.Config) {
	t.Helper()
	mounts := map[string]string{}
	for _, m := range r.c.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	if r.c.WorkingDir != mounts["config"] || strings.Join(r.c.Args, " ") != "--config "+mounts["config"]+"/sequins.conf" {
		t.Errorf("the configuration is mounted at %s, and read by %v in %s", mounts["config"], r.c.Args, r.c.WorkingDir)
	}
	if c.LocalStore != mounts["store"] {
		t.Errorf("the local store is %s, and its volume at %s", c.LocalStore, mounts["store"])
	}
	names := slices.Sorted(maps.Keys(mounts))
	var volumes, given []string
	for _, v := range r.set.VolumeClaimTemplates {
		volumes = append(volumes, v.Metadata.Name)
	}
	for _, v := range r.pod.Volumes {
		volumes = append(volumes, v.Name)
		if v.Name == "secrets" {
			for _, s := range v.Projected.Sources {
				for _, i := range s.Secret.Items {
					given = append(given, mounts["secrets"]+"/"+i.Path)
				}
			}
		}
	}
	if slices.Sort(volumes); !slices.Equal(names, volumes) {
		t.Errorf("the volumes are %v, the mounts %v", volumes, names)
	}
	conf := r.objects["ConfigMap/"+r.meta.Name].Data["sequins.conf"]
	used := regexp.MustCompile(`"(/etc/sequins-secrets/[^"]+)"`).FindAllStringSubmatch(conf, -1)
	var paths []string
	for _, m := range used {
		paths = append(paths, m[1])
	}
	for _, e := range r.c.Env {
		if strings.HasPrefix(e.Value, "/etc/sequins-secrets/") {
			paths = append(paths, e.Value)
		}
	}
	slices.Sort(paths)
	slices.Sort(given)
	if !slices.Equal(slices.Compact(paths), given) {
		t.Errorf("sequins.conf and the environment name %v, the Secrets have %v", paths, given)
	}
}

// checkPorts checks that sequins listens where the probes, the services and Prometheus look for it.
func (r *rendering) checkPorts(t *testing.T, c config.Config) {
	t.Helper()
	ports := map[string]int{}
	for _, p := range r.c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for name, bind := range map[string]string{"http": c.Bind, "metrics": c.Debug.Bind, "redis": c.Redis.Bind} {
		want := ""
		if ports[name] != 0 {
			want = fmt.Sprintf(":%d", ports[name])
		}
		if bind != want {
			t.Errorf("%s: sequins listens on %q, the port is %d", name, bind, ports[name])
		}
	}
	for probe, path := range map[*Probe]string{&r.c.StartupProbe: "/livez", &r.c.LivenessProbe: "/livez", &r.c.ReadinessProbe: "/readyz"} {
		get := probe.HTTPGet
		port, scheme := "http", ""
		switch {
		case c.TLS.ClientCA != "":
			port = "metrics" // the kubelet has no certificate
		case c.TLS.Certificate != "":
			scheme = "HTTPS"
		}
		if get.Path != path || get.Port != port || get.Scheme != scheme {
			t.Errorf("a probe is %+v, want %s of %s by %q", get, path, port, scheme)
		}
	}
	if a := r.set.Template.Metadata.Annotations["prometheus.io/port"]; a != "" && a != fmt.Sprint(ports["metrics"]) {
		t.Errorf("Prometheus is sent to port %s", a)
	}
	for _, o := range r.objects.Of("Service") {
		var s service
		decode(t, o, &s)
		for _, p := range s.Ports {
			if ports[p.TargetPort] == 0 {
				t.Errorf("%s leads to %s, which is no port of the pods", o.Metadata.Name, p.TargetPort)
			}
			if s.ClusterIP == "None" && ports[p.TargetPort] != p.Port {
				t.Errorf("%s has no port of its own, and leads from %d to %s", o.Metadata.Name, p.Port, p.TargetPort)
			}
		}
		if (o.Metadata.Name == r.set.ServiceName) != (s.ClusterIP == "None") || s.PublishNotReadyAddresses != (s.ClusterIP == "None") {
			t.Errorf("%s: %+v; the pods have names of %s", o.Metadata.Name, s, r.set.ServiceName)
		}
	}
	if host := c.Sharding.AdvertisedHostname; c.Sharding.Enabled && !strings.HasPrefix(host, r.meta.Name+"-0."+r.set.ServiceName+".example.svc.") || c.Sharding.Enabled && c.Sharding.ShardID != r.meta.Name+"-0" {
		t.Errorf("pod 0 has shard id %s and is advertised as %s", c.Sharding.ShardID, host)
	}
}

type service struct {
	ClusterIP                string
	PublishNotReadyAddresses bool
	Selector                 map[string]string
	Ports                    []struct {
		Name, TargetPort string
		Port             int
	}
}

func decode(t *testing.T, o Object, into any) {
	t.Helper()
	expect.NoError(t, json.Unmarshal(o.Spec, into))
}

// checkTimes checks that a pod serves until it gets no more requests, and is not killed before its last answer.
func (r *rendering) checkTimes(t *testing.T, c config.Config) {
	t.Helper()
	const requestsInFlight = 30 * time.Second // node.shutdownTimeout
	noticed := time.Duration(r.c.ReadinessProbe.PeriodSeconds*r.c.ReadinessProbe.FailureThreshold) * time.Second
	grace := time.Duration(r.pod.TerminationGracePeriodSeconds) * time.Second
	if c.ShutdownDelay <= noticed || grace < c.ShutdownDelay+requestsInFlight+10*time.Second {
		t.Errorf("a pod that is not ready is noticed after %s, serves for %s after SIGTERM, and is killed after %s", noticed, c.ShutdownDelay, grace)
	}
	if r.set.PodManagementPolicy != "Parallel" || r.set.UpdateStrategy.Type != "RollingUpdate" {
		t.Errorf("%s, %s", r.set.PodManagementPolicy, r.set.UpdateStrategy.Type)
	}
}

// checkMemory checks that the heap and the loads fit into the limit together, and that a load gets its least.
func (r *rendering) checkMemory(t *testing.T, c config.Config) {
	t.Helper()
	env := map[string]string{}
	for _, e := range r.c.Env {
		env[e.Name] = e.Value
	}
	heap, err := config.ParseSize(env["GOMEMLIMIT"])
	expect.NoError(t, err)
	limit, err := config.ParseSize(strings.Replace(fmt.Sprint(r.c.Resources.Limits.Memory), "i", "iB", 1))
	expect.NoError(t, err)
	loads := config.Size(c.MaxParallelLoads) * c.LoadMemoryLimit()
	if c.Load.MemoryLimit == 0 || heap+loads > limit-256<<20 || heap < 256<<20 {
		t.Errorf("a heap of %s and %d loads of %s in a container of %s", heap, c.MaxParallelLoads, c.Load.MemoryLimit, limit)
	}
	if (env["GOMAXPROCS"] == "") != (r.c.Resources.Limits.CPU != nil) {
		t.Errorf("GOMAXPROCS is %q, and the limit of the CPU %v", env["GOMAXPROCS"], r.c.Resources.Limits.CPU)
	}
}

// checkSelectors checks that everything that selects pods or services finds them.
func (r *rendering) checkSelectors(t *testing.T) {
	t.Helper()
	pods := r.set.Template.Metadata.Labels
	selects := func(who string, labels, selector map[string]string) {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s selects %s=%s", who, key, value)
			}
		}
		if len(selector) < 2 {
			t.Errorf("%s selects by %v only", who, selector)
		}
	}
	selects("the StatefulSet", pods, r.set.Selector.MatchLabels)
	for _, kind := range []string{"PodDisruptionBudget", "NetworkPolicy", "PodMonitor"} {
		for _, o := range r.objects.Of(kind) {
			var s struct {
				Selector, PodSelector struct{ MatchLabels map[string]string }
			}
			decode(t, o, &s)
			selector := s.Selector.MatchLabels
			if kind == "NetworkPolicy" {
				selector = s.PodSelector.MatchLabels
			}
			selects(kind, pods, selector)
		}
	}
	for _, o := range r.objects.Of("Service") {
		var s service
		decode(t, o, &s)
		selects(o.Metadata.Name, pods, s.Selector)
		for _, m := range r.objects.Of("ServiceMonitor") {
			var monitor struct {
				Selector struct{ MatchLabels map[string]string }
			}
			decode(t, m, &monitor)
			if o.Metadata.Name == r.set.ServiceName {
				selects("the ServiceMonitor", o.Metadata.Labels, monitor.Selector.MatchLabels)
			}
		}
	}
}

// checkSecurity checks that containers run as an ordinary user who can write to volumes only.
func (r *rendering) checkSecurity(t *testing.T) {
	t.Helper()
	p := r.pod.SecurityContext
	if !p.RunAsNonRoot || p.SeccompProfile.Type != "RuntimeDefault" || r.pod.AutomountServiceAccountToken || r.pod.EnableServiceLinks {
		t.Errorf("the pod: %+v", p)
	}
	for _, c := range r.pod.Containers {
		s := c.SecurityContext
		if s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s: %+v", c.Name, s)
		}
	}
}
