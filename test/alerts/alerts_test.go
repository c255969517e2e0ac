//go:build integration

package alerts

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sequins/test/harness"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	process.Parallel(20)
	m.Run()
	process.RemoveBinary()
}

// A fault is caused by a function, which holds that some alerts tell of it.
type fault struct {
	name   string
	cause  func(s *scene)
	alerts []string
}

var faults = []fault{
	{"killed", killed, []string{"SequinsDown", "SequinsPartitionsUnderreplicated", "SequinsPartitionsMissing", "SequinsErrors"}},
	{"silent", silent, []string{"SequinsPeersFailing", "SequinsSlow", "SequinsErrors"}},
	{"zookeeper", zookeeperLost, []string{"SequinsZooKeeperLost"}},
	{"settings", settingsDiffer, []string{"SequinsClusterSettings", "SequinsSettingsDiffer"}},
	{"diverged", changedVersion, []string{"SequinsVersionDiverged"}},
	{"held", heldVersion, []string{"SequinsVersionHeld"}},
	{"files", damagedFile, []string{"SequinsVersionFailed", "SequinsNotServing"}},
	{"stuck", sourceHangs, []string{"SequinsLoadStuck"}},
	{"old", oldData, []string{"SequinsDataOld"}},
	{"behind", oneIsBehind, []string{"SequinsVersionsDiffer"}},
	{"unmounted", sourceGone, []string{"SequinsSourceUnreachable"}},
	{"full", diskFull, []string{"SequinsDiskFull"}},
	{"flipped", damagedBlock, []string{"SequinsChecksumFailures"}},
	{"unreadable", unreadableBlock, []string{"SequinsErrors"}},
	{"reload", badConfiguration, []string{"SequinsReloadFailed"}},
	{"certificate", oldCertificate, []string{"SequinsCertificateExpires"}},
	{"descriptors", manyConnections, []string{"SequinsDescriptors"}},
}

// Every alert fires in its fault.
func TestAlerts(t *testing.T) {
	runtime.LockOSThread() // processes that this thread starts end with it
	p := startPrometheus(t)
	java := harness.Start(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.cause(newScene(t, f.name, p, java))
		})
	}
}

// Every alert has a fault, and a section that says what to look at: a command, a metric, or something in the log.
func TestEveryAlertHasAFault(t *testing.T) {
	names := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(readRules(t), -1)
	for _, m := range names {
		if !slices.ContainsFunc(faults, func(f fault) bool { return slices.Contains(f.alerts, m[1]) }) {
			t.Errorf("no fault is caused for %s", m[1])
		}
		if s := section(t, m[1]); !strings.Contains(s, "`") && !strings.Contains(s, "log") {
			t.Errorf("the section on %s does not say what to look at: %q", m[1], s)
		}
	}
	if len(names) < 20 {
		t.Errorf("%d alerts", len(names))
	}
}
