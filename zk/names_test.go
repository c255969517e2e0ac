package zk

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		NodePath("1", "host:9599"):                            "nodes/1@host:9599",
		RouterPath("r", "[::1]:9599"):                         "routers/r@[::1]:9599",
		VersionDir("db", "2026"):                              "partitions/db/2026",
		PartitionPath("db", "2026", 7, "host:9599"):           "partitions/db/2026/00007@host:9599",
		PartitionPath("db", "2026", 123456, "10.0.0.1:65535"): "partitions/db/2026/123456@10.0.0.1:65535",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParseNode(t *testing.T) {
	for name, want := range map[string]struct{ shardID, addr, err string }{
		"1@host:9599":          {"1", "host:9599", ""},
		"host@host:1":          {"host", "host:1", ""},
		"a b@[fe80::1%eth0]:1": {"a b", "[fe80::1%eth0]:1", ""},
		"host:9599":            {err: "not of the form"},
		"":                     {err: "not of the form"},
		"@host:9599":           {err: "not of the form"},
		"1@":                   {err: "missing port"},
		"1@host":               {err: "missing port"},
		"1@:9599":              {err: `"" is not a host`},
		"1@host:":              {err: `"" is not a port`},
		"1@host:0":             {err: `"0" is not a port`},
		"1@host:65536":         {err: `"65536" is not a port`},
		"1@host:+80":           {err: `"+80" is not a port`},
		"1@host:080":           {err: `"080" is not a port`},
		"1@host:80:81":         {err: "too many colons"},
		"1@2@host:80":          {err: `"2@host" is not a host`},
		"1@ho st:80":           {err: `"ho st" is not a host`},
		"_lock-0000000001":     {err: "not of the form"},
	} {
		shardID, addr, err := ParseNode(name)
		if shardID != want.shardID || addr != want.addr || !errContains(err, want.err) {
			t.Errorf("%q: %q, %q, %v", name, shardID, addr, err)
		}
	}
}

func TestParsePartition(t *testing.T) {
	for name, want := range map[string]struct {
		partition int
		addr, err string
	}{
		"00000@host:9599":      {0, "host:9599", ""},
		"00042@[::1]:1":        {42, "[::1]:1", ""},
		"65535@host:1":         {65535, "host:1", ""},
		"65536@host:1":         {err: "is not a partition"},
		"0@host:9599":          {err: "is not a partition in at least five digits"},
		"000001@host:9599":     {err: "is not a partition"},
		"-0001@host:9599":      {err: "is not a partition"},
		"+0001@host:9599":      {err: "is not a partition"},
		"0x001@host:9599":      {err: "is not a partition"},
		"@host:9599":           {err: "is not a partition"},
		"00001":                {err: "not of the form"},
		"00001@host":           {err: "missing port"},
		"00001@a@host:1":       {err: "is not a host"},
		"99999999999999@h:1":   {err: "is not a partition"},
		"９９９９９@host:1":         {err: "is not a partition"},
		"99999999999999999999": {err: "not of the form"},
	} {
		partition, addr, err := ParsePartition(name)
		if partition != want.partition || addr != want.addr || !errContains(err, want.err) {
			t.Errorf("%q: %d, %q, %v", name, partition, addr, err)
		}
	}
}

func errContains(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), want)
}

// Names that parse are written the same way again, so that two different names
// never mean the same.
func FuzzParseNode(f *testing.F) {
	for _, seed := range []string{"1@host:9599", "@", "a@[::1]:1", "1@host:080"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		shardID, addr, err := ParseNode(name)
		if err != nil {
			if shardID != "" || addr != "" || !strings.Contains(err.Error(), "znode") {
				t.Fatalf("%q, %q, %v", shardID, addr, err)
			}
			return
		}
		if NodePath(shardID, addr) != NodesDir+"/"+name {
			t.Fatalf("%q became %q", name, NodePath(shardID, addr))
		}
	})
}

func FuzzParsePartition(f *testing.F) {
	for _, seed := range []string{"00001@host:9599", "123456@host:1", "@", "+0001@host:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		partition, addr, err := ParsePartition(name)
		if err != nil {
			if partition != 0 || addr != "" || !strings.Contains(err.Error(), "znode") {
				t.Fatalf("%d, %q, %v", partition, addr, err)
			}
			return
		}
		if PartitionPath("db", "1", partition, addr) != VersionDir("db", "1")+"/"+name {
			t.Fatalf("%q became %q", name, PartitionPath("db", "1", partition, addr))
		}
	})
}

func TestOptions(t *testing.T) {
	given := []string{"zk", "zk:1", "10.0.0.1", "[::1]:7", "::1"}
	got := Options{Servers: given}.servers()
	if got := strings.Join(got, " "); got != "zk:2181 zk:1 10.0.0.1:2181 [::1]:7 [::1]:2181" || given[0] != "zk" {
		t.Errorf("servers %s of %q", got, given)
	}
}
