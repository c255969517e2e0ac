package config

import (
	"os"
	"path/filepath"
	"testing"

	"sequins/test/expect"
)

// The limit is that of the process's own group, or of one that contains it, in every layout in which containers and
// systemd show them. The lines are those of real ones.
func TestCgroupMemory(t *testing.T) {
	const (
		gib     = 1 << 30
		v2Mount = "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1Mount = "33 31 0:28 / /sys/fs/cgroup/memory rw,relatime shared:14 - cgroup cgroup rw,memory\n"
		v1CPU   = "34 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:15 - cgroup cgroup rw,cpu,cpuacct\n"
	)
	for name, test := range map[string]struct {
		files map[string]string
		want  Size
	}{
		"no cgroups": {map[string]string{}, noLimit},
		"a container of version 2, in a namespace of its own": {map[string]string{
			"proc/self/mountinfo": "1 0 0:1 / / rw - overlay overlay rw\n" + v2Mount,
			"proc/self/cgroup":    "0::/\n", "sys/fs/cgroup/memory.max": "2147483648\n",
		}, 2 * gib},
		"without a limit": {map[string]string{
			"proc/self/mountinfo": v2Mount, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, noLimit},
		"a unit of version 2 in a slice with a smaller limit": {map[string]string{
			"proc/self/mountinfo": v2Mount, "proc/self/cgroup": "0::/data.slice/sequins.service\n",
			"sys/fs/cgroup/data.slice/sequins.service/memory.max": "4294967296\n", "sys/fs/cgroup/data.slice/memory.max": "1073741824\n",
		}, gib},
		"a container of version 1": {map[string]string{
			"proc/self/mountinfo": "700 690 0:30 /kubepods/burstable/pod1/c1 /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n" +
				"701 690 0:31 /kubepods/burstable/pod1/c1 /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n",
			"proc/self/cgroup":                            "8:cpu,cpuacct:/kubepods/burstable/pod1/c1\n4:memory:/kubepods/burstable/pod1/c1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":  "3221225472\n",
			"sys/fs/cgroup/memory/kubepods/burstable/pod": "",
		}, 3 * gib},
		"a group of version 1 beside version 2 without memory": {map[string]string{
			"proc/self/mountinfo": "42 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + v1CPU + v1Mount,
			"proc/self/cgroup":    "4:memory:/user/1\n1:cpu:/\n0::/\n",
			"sys/fs/cgroup/memory/user/1/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/user/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":        "9223372036854771712\n",
		}, gib},
		"a group outside of what is mounted": {map[string]string{
			"proc/self/mountinfo": "29 23 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "proc/self/cgroup": "0::/../ab\n",
			"sys/fs/cgroup/memory.max": "1073741824\n",
		}, gib},
		"nonsense": {map[string]string{
			"proc/self/mountinfo": "\n - \n1 2 - cgroup2\n" + v2Mount, "proc/self/cgroup": "x\n0\n0::\n", "sys/fs/cgroup/memory.max": "-5\n",
		}, noLimit},
	} {
		root := t.TempDir()
		for file, text := range test.files {
			path := filepath.Join(root, file)
			expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		if got := cgroupMemory(root); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
