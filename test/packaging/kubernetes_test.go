//go:build integration

package packaging

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sequins/test/process"
)

// object is the part of a Kubernetes object that the tests check.
type object struct {
	Kind     string                `yaml:"kind"`
	Metadata struct{ Name string } `yaml:"metadata"`
	Data     map[string]string     `yaml:"data"`
	Spec     struct {
		Ports []struct {
			Port       int    `yaml:"port"`
			TargetPort string `yaml:"targetPort"`
		} `yaml:"ports"`
		Selector map[string]any `yaml:"selector"`
		Template struct {
			Metadata struct {
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"metadata"`
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
		VolumeClaimTemplates []struct {
			Metadata struct{ Name string } `yaml:"metadata"`
		} `yaml:"volumeClaimTemplates"`
	} `yaml:"spec"`
}

type pod struct {
	Grace           int `yaml:"terminationGracePeriodSeconds"`
	SecurityContext struct {
		User int `yaml:"runAsUser"`
	} `yaml:"securityContext"`
	Containers []struct {
		Args  []string `yaml:"args"`
		Ports []struct {
			Name string `yaml:"name"`
			Port int    `yaml:"containerPort"`
		} `yaml:"ports"`
		Startup   probe `yaml:"startupProbe"`
		Liveness  probe `yaml:"livenessProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Mounts    []struct {
			Name string `yaml:"name"`
			Path string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	} `yaml:"containers"`
	Volumes []struct {
		Name      string                `yaml:"name"`
		ConfigMap struct{ Name string } `yaml:"configMap"`
	} `yaml:"volumes"`
}

type probe struct {
	Get      struct{ Path, Port string } `yaml:"httpGet"`
	Period   int                         `yaml:"periodSeconds"`
	Failures int                         `yaml:"failureThreshold"`
}

// objects reads the manifests. Every document has a kind and a name.
func objects(t *testing.T) map[string]object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "kubernetes", "sequins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil || o.Kind == "" || o.Metadata.Name == "" {
			t.Fatalf("an object %+v, %v", o, err)
		}
		found[o.Kind+"/"+o.Metadata.Name] = o
	}
}

// The manifests are consistent with sequins and with each other.
func TestKubernetes(t *testing.T) {
	all := objects(t)
	set, config := all["StatefulSet/sequins"], all["ConfigMap/sequins"]
	p := set.Spec.Template.Spec
	if len(p.Containers) != 1 || p.SecurityContext.User != 65532 {
		t.Fatalf("the pod is %+v", p)
	}
	c := p.Containers[0]

	conf := filepath.Join(t.TempDir(), "sequins.conf")
	if err := os.WriteFile(conf, []byte(config.Data["sequins.conf"]), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, process.Binary(t), "check-config", conf)
	mounts := map[string]string{}
	for _, m := range c.Mounts {
		mounts[m.Name] = m.Path
	}
	if strings.Join(c.Args, " ") != "--config "+mounts["config"]+"/sequins.conf" || p.Volumes[0].ConfigMap.Name != "sequins" {
		t.Errorf("the configuration is mounted at %s, and read by %v", mounts["config"], c.Args)
	}
	if got := value(t, config, "local_store"); got != mounts["store"] || set.Spec.VolumeClaimTemplates[0].Metadata.Name != "store" {
		t.Errorf("the local store is %s, and its volume at %s", got, mounts["store"])
	}

	ports := map[string]int{}
	for _, port := range c.Ports {
		ports[port.Name] = port.Port
	}
	binds := regexp.MustCompile(`(?m)^bind = "0\.0\.0\.0:(\d+)"$`).FindAllStringSubmatch(config.Data["sequins.conf"], -1)
	if len(binds) != 2 || binds[0][1] != strconv.Itoa(ports["http"]) || binds[1][1] != strconv.Itoa(ports["metrics"]) {
		t.Errorf("sequins listens on %v, the ports are %v", binds, ports)
	}
	if got := set.Spec.Template.Metadata.Annotations["prometheus.io/port"]; got != strconv.Itoa(ports["metrics"]) {
		t.Errorf("Prometheus is sent to port %s", got)
	}
	for _, name := range []string{"Service/sequins", "Service/sequins-nodes"} {
		s := all[name]
		for key, label := range s.Spec.Selector {
			if set.Spec.Template.Metadata.Labels[key] != label {
				t.Errorf("%s selects %s=%v", name, key, label)
			}
		}
		for _, port := range s.Spec.Ports {
			if ports[port.TargetPort] != port.Port {
				t.Errorf("%s leads from %d to %s", name, port.Port, port.TargetPort)
			}
		}
	}
	const requestsInFlight = 30 // what node.Options.ShutdownTimeout stands for
	delay, err := time.ParseDuration(value(t, config, "shutdown_delay"))
	if err != nil || delay <= time.Duration(c.Readiness.Period*c.Readiness.Failures)*time.Second || time.Duration(p.Grace)*time.Second <= delay+requestsInFlight*time.Second {
		t.Errorf("a pod is not ready after %d failures, one each %d s; it serves for %v, %v, and is killed after %d s",
			c.Readiness.Failures, c.Readiness.Period, delay, err, p.Grace)
	}

	// The probes ask for what there is.
	source := t.TempDir()
	writeWords(t, source)
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store")})
	n.WaitCurrent(t, "words", "1")
	for _, probe := range []probe{c.Startup, c.Liveness, c.Readiness} {
		if r := n.Get(t, probe.Get.Path); r.Code != 200 || probe.Get.Port != "http" {
			t.Errorf("%+v is answered with %d", probe, r.Code)
		}
	}
	if c.Readiness.Get.Path != "/readyz" || c.Liveness.Get.Path != "/livez" {
		t.Errorf("live by %s, ready by %s", c.Liveness.Get.Path, c.Readiness.Get.Path)
	}
}

// value is that of a string in sequins.conf.
func value(t *testing.T, config object, key string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + key + ` = "(.*)"$`).FindStringSubmatch(config.Data["sequins.conf"])
	if m == nil {
		t.Fatalf("sequins.conf sets no %s", key)
	}
	return m[1]
}
