//go:build integration

package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// differences returns what a member says of settings that differ.
func (m *member) differences(t testing.TB) (lines []string) {
	t.Helper()
	var s struct {
		Differences []struct {
			Setting string `json:"setting"`
			Values  []struct {
				Value string   `json:"value"`
				Nodes []string `json:"nodes"`
			} `json:"values"`
		} `json:"differences"`
	}
	r := m.node.Get(t, "/")
	if err := json.Unmarshal(r.Body, &s); err != nil {
		t.Fatalf("status of %s: %d: %v: %s", m.name, r.Code, err, r.Body)
	}
	for _, d := range s.Differences {
		line := d.Setting
		for _, v := range d.Values {
			line += " " + v.Value + "@" + strings.Join(v.Nodes, ",")
		}
		lines = append(lines, line)
	}
	return lines
}

// TestSettingsDiffer: each setting that nodes should have alike and have not is in the status, the log and the metrics of every node, until a
// reload makes them alike.
func TestSettingsDiffer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sharedZookeeper(t), settings{data: dataset{partitions: 3, keys: 50}, members: 3, replication: 2})
	c.publish(t, "v1")
	odd := c.members[2]
	odd.config.Extra += "keep_versions = 2\n"
	odd.sharding = append(odd.sharding, "zone = \"z\"", "heal_after = \"1h\"")
	for _, m := range c.members {
		m.launch(t)
	}
	for _, m := range c.members {
		m.waitLive(t)
	}
	c.waitServed(t, "v1")
	both := []string{c.members[0].addr(), c.members[1].addr()}
	slices.Sort(both) // 10.77.1.100 is before 10.77.1.99
	most, other := strings.Join(both, ","), odd.addr()
	want := []string{"keep_versions 1@" + most + " 2@" + other, "sharding.heal_after '0s'@" + most + " '1h0m0s'@" + other}
	for _, m := range c.members {
		m.node.WaitFor(t, m.name+" sees both differences", func() bool { return slices.Equal(m.differences(t), want) })
		line := "keep_versions differs: 1 on " + strings.ReplaceAll(most, ",", ", ") + "; 2 on " + other
		if !hasWords(m.node.Log(), `level=WARN msg="the nodes of the cluster are configured differently"`, line) {
			t.Errorf("the log of %s does not have %q", m.name, line)
		}
		if got := m.node.Metrics(t); !strings.Contains(got, "\nsequins_cluster_differences 2\n") {
			t.Errorf("%s does not count two differences", m.name)
		}
		if out, code := statusCommand(t, m); code != 4 || !hasWords(out, line) {
			t.Errorf("sequins status of %s: %d\n%s", m.name, code, out)
		}
	}
	conf, err := os.ReadFile(odd.node.Conf)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(odd.node.Conf, []byte(strings.Replace(string(conf), "keep_versions = 2\n", "", 1)), 0o644))
	odd.node.Signal(t, syscall.SIGHUP)
	for _, m := range c.members {
		m.node.WaitFor(t, m.name+" sees one difference, which needs a restart", func() bool { return slices.Equal(m.differences(t), want[1:]) })
		if !hasWords(m.node.Log(), `msg="the nodes of the cluster are configured alike again" node=`+m.addr()+" setting=keep_versions") {
			t.Errorf("the log of %s does not say that it is resolved", m.name)
		}
	}
}

// statusCommand runs sequins status.
func statusCommand(t testing.TB, m *member) (out string, code int) {
	t.Helper()
	cmd := exec.Command(process.Binary(t), "status", "--server", m.addr())
	said, _ := cmd.CombinedOutput() // the exit code says it
	return string(said), cmd.ProcessState.ExitCode()
}
