package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/config"
)

// apiServer answers like that of Kubernetes, for one node and one token.
func apiServer(t *testing.T, labels map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token" {
			http.Error(w, `{"kind":"Status",`+"\n"+`"message":"nodes \"n1\" is forbidden"}`, http.StatusForbidden)
			return
		}
		if r.Method != "GET" || r.URL.Path != "/api/v1/nodes/n1" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"kind": "Node", "metadata": map[string]any{"name": "n1", "labels": labels}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// account writes the files of a service account that trusts a server.
func account(t *testing.T, s *httptest.Server, token string) string {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string]string{"token": token, "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The zone is that of the node's label, or empty; everything else is an error that says what is wrong.
func TestKubernetesZone(t *testing.T) {
	zoned, other := apiServer(t, map[string]string{"topology.kubernetes.io/zone": "eu-1a"}), apiServer(t, nil)
	long := apiServer(t, map[string]string{"topology.kubernetes.io/zone": strings.Repeat("z", 300)})
	for name, test := range map[string]struct {
		server      *httptest.Server
		node, token string
		want        string // content of the file
		says        string // an error, unless want is set
	}{
		"a zone":                  {zoned, "n1", "a-token\n", "eu-1a\n", ""},
		"no zone":                 {other, "n1", "a-token", "\n", "node n1 has no label topology.kubernetes.io/zone"},
		"a label that is no zone": {long, "n1", "a-token", "", "is not one line of at most 255 bytes"},
		"another node":            {zoned, "n2", "a-token", "", `the zone of node "n2": 404`},
		"no permission":           {zoned, "n1", "other", "", `403 Forbidden: the pod's service account needs a ClusterRole that may get nodes: {"kind":"Status", "message"`},
		"no node":                 {zoned, "", "a-token", "", "NODE_NAME is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			host, port, err := net.SplitHostPort(strings.TrimPrefix(test.server.URL, "https://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBERNETES_SERVICE_HOST", host)
			t.Setenv("KUBERNETES_SERVICE_PORT", port)
			t.Setenv("NODE_NAME", test.node)
			file := filepath.Join(t.TempDir(), "zone")
			r := sequins(t, "kubernetes-zone", file, "--service-account", account(t, test.server, test.token))
			got, _ := os.ReadFile(file)
			if code := map[bool]int{true: exitOK, false: exitFailure}[test.want != ""]; r.code != code || string(got) != test.want || !strings.Contains(r.stderr, test.says) {
				t.Errorf("exit code %d, file %q, it says %q", r.code, got, r.stderr)
			}
		})
	}
	t.Run("not in a pod", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		sequins(t, "kubernetes-zone", filepath.Join(t.TempDir(), "zone"), "--node", "n1").wants(t, exitFailure, `sequins: the zone of node "n1": this is not a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set`)
	})
}

// A zone in a file is that of the node, as is an empty one. check-config reads it, too.
func TestZoneFile(t *testing.T) {
	dir := t.TempDir()
	file, conf := filepath.Join(dir, "zone"), filepath.Join(dir, "sequins.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "source = \"/d\"\n[sharding]\nenabled = true\nzone_file = %q\n", file), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"eu-1a\n": "eu-1a", "": "", "a\nb": "error"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if want == "error" {
			sequins(t, "check-config", conf).wants(t, exitFailure, "sequins: sharding.zone_file: what is in "+file+" is not one line of at most 255 bytes")
			continue
		}
		if got, err := zone(&config.Sharding{ZoneFile: file}); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		sequins(t, "check-config", conf).wants(t, exitOK)
	}
}
