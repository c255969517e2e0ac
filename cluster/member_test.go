package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/zk"
)

func settings(change func(*Settings)) Settings {
	s := Settings{Replication: 2, Assignment: shard.RoundRobin, Weight: 1}
	if change != nil {
		change(&s)
	}
	return s
}

func entry(t *testing.T, name string, s Settings) zk.Entry {
	t.Helper()
	data, err := json.Marshal(s)
	expect.NoError(t, err)
	return zk.Entry{Name: name, Data: data}
}

func TestParseMembers(t *testing.T) {
	members, malformed := parseMembers([]zk.Entry{
		entry(t, "a@h1:1", settings(nil)),
		{Name: "b@h2:1"},
		{Name: "lock-0000000001"},
		{Name: "c@h3:1", Data: []byte("{")},
		{Name: "d@h4:1", Data: []byte(`{"weight": -1}`)},
		{Name: "e@h5:1", Data: []byte(`{"weight": 1e300}`)},
		{Name: "f@h6:1", Unreadable: true}, // it is not known to be of upstream's kind
	})
	var got []string
	for _, m := range members {
		text := m.ShardID + " " + m.Addr
		if m.Settings != nil {
			text += " with settings"
		}
		got = append(got, text)
	}
	want := []string{"a h1:1 with settings", "b h2:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(malformed) != 5 || !strings.Contains(malformed[0], "lock-0000000001") {
		t.Errorf("complaints %q", malformed)
	}
}

// Nodes that would divide the data differently report it, each of them. Those without a rule of their own divide by the cluster's.
func TestMismatches(t *testing.T) {
	self := func(s Settings) *Member { return &Member{ShardID: "self", Addr: "me:1", Settings: &s} }
	by := func(rule shard.Assignment) Settings { return settings(func(s *Settings) { s.Assignment = rule }) }
	for name, tt := range map[string]struct {
		rule        shard.Assignment
		own, theirs Settings
		want        string
	}{
		"alike":              {"", by(shard.RoundRobin), by(shard.RoundRobin), ""},
		"weight and zone":    {"", settings(nil), settings(func(s *Settings) { s.Weight, s.Zone = 3, "z" }), ""},
		"replication":        {"", settings(nil), settings(func(s *Settings) { s.Replication = 3 }), "has sharding.replication 3, and this node 2"},
		"assignment":         {"", by(shard.RoundRobin), by(shard.Balanced), "has sharding.assignment balanced, and this node round_robin"},
		"balanced already":   {"", by(shard.Balanced), by(shard.RoundRobin), "has sharding.assignment round_robin, and this node balanced"},
		"both follow":        {shard.Balanced, by(""), by(""), ""},
		"follows, the same":  {shard.Balanced, by(shard.Balanced), by(""), ""},
		"follows, another":   {shard.Balanced, by(shard.RoundRobin), by(""), "has sharding.assignment balanced, and this node round_robin"},
		"this one follows":   {shard.Balanced, by(""), by(shard.RoundRobin), "has sharding.assignment round_robin, and this node balanced"},
		"rule not yet known": {"", by(shard.RoundRobin), by(""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ms := newMembership([]Member{{ShardID: "x", Addr: "h:1", Settings: &tt.theirs}}, self(tt.own), tt.own, tt.rule, time.Now())
			back := newMembership([]Member{{ShardID: "x", Addr: "h:1", Settings: &tt.own}}, self(tt.theirs), tt.theirs, tt.rule, time.Now())
			if tt.want == "" {
				if len(ms.problems)+len(back.problems) > 0 {
					t.Errorf("problems %q, %q", ms.problems, back.problems)
				}
				return
			}
			if len(ms.problems) != 1 || !strings.Contains(ms.problems[0], "node h:1 (shard x) "+tt.want) || len(back.problems) != 1 {
				t.Errorf("problems %q, and of the other node %q", ms.problems, back.problems)
			}
		})
	}
}

// A node of upstream's kind divides by round_robin. Only then it has a share; otherwise it is a problem.
func TestShareOfUpstream(t *testing.T) {
	for _, rule := range []shard.Assignment{shard.RoundRobin, shard.Balanced} {
		own := settings(func(s *Settings) { s.Assignment = "" })
		ms := newMembership([]Member{{ShardID: "x", Addr: "h:1"}}, &Member{ShardID: "self", Addr: "me:1", Settings: &own}, own, rule, time.Now())
		alike := rule == shard.RoundRobin
		if got := len(ms.shards) == 2; got != alike || len(ms.all) != 2 || (len(ms.problems) == 0) != alike {
			t.Errorf("%s: shards %v, problems %q", rule, ms.shards, ms.problems)
		}
		if !alike && !strings.Contains(ms.problems[0], "node h:1 (shard x) is of the original sequins") {
			t.Errorf("problem %q", ms.problems[0])
		}
	}
}

// A node is a member in its own view even if its znode is missing; a router is
// not.
func TestMembershipHasSelf(t *testing.T) {
	s := settings(nil)
	self := &Member{ShardID: "b", Addr: "me:1", Settings: &s}
	for name, tt := range map[string]struct {
		others []Member
		self   *Member
		want   string
	}{
		"alone":              {nil, self, "b@me:1"},
		"not published yet":  {[]Member{{ShardID: "a", Addr: "h:1"}, {ShardID: "c", Addr: "h:2"}}, self, "a@h:1 b@me:1 c@h:2"},
		"as it was":          {[]Member{{ShardID: "old", Addr: "me:1"}}, self, "b@me:1"},
		"a router":           {[]Member{{ShardID: "a", Addr: "h:1"}}, nil, "a@h:1"},
		"two share an id":    {[]Member{{ShardID: "b", Addr: "h:9"}}, self, "b@h:9 b@me:1"},
		"an older self, too": {[]Member{{ShardID: "b", Addr: "me:1"}}, self, "b@me:1"},
	} {
		var names []string
		for _, m := range newMembership(tt.others, tt.self, s, "", time.Now()).all {
			names = append(names, m.ShardID+"@"+m.Addr)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The shards of a membership depend on exactly what matters to a division.
func TestShards(t *testing.T) {
	s := settings(nil)
	shards := func(change func(*Member)) []shard.Member {
		weighed := settings(nil)
		m := Member{ShardID: "x", Addr: "h:1", Settings: &weighed}
		if change != nil {
			change(&m)
		}
		return newMembership([]Member{m}, &Member{ShardID: "self", Addr: "me:1", Settings: &s}, s, "", time.Now()).shards
	}
	if !slices.Equal(shards(nil), shards(func(m *Member) { m.Addr = "elsewhere:1" })) {
		t.Error("a shard that moves to another address is another membership")
	}
	for name, change := range map[string]func(*Member){
		"shard id": func(m *Member) { m.ShardID = "y" },
		"weight":   func(m *Member) { m.Settings.Weight = 2 },
		"zone":     func(m *Member) { m.Settings.Zone = "z" },
	} {
		if slices.Equal(shards(nil), shards(change)) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

// A node knows the zone of each member, as it is now, and its own; a router, which is no member, those of the others.
func TestZoneOf(t *testing.T) {
	in := func(zone string) Settings { return settings(func(s *Settings) { s.Zone = zone }) }
	own := in("mine")
	c := new(Cluster)
	for _, tt := range []struct {
		entries []zk.Entry
		self    *Member
		want    []string
	}{
		{nil, &Member{ShardID: "me", Addr: "me:1", Settings: &own}, []string{"mine", "", ""}},
		{[]zk.Entry{entry(t, "a@h1:1", in("x")), {Name: "b@h2:1"}}, &Member{ShardID: "me", Addr: "me:1", Settings: &own}, []string{"mine", "x", ""}},
		{[]zk.Entry{entry(t, "a@h1:1", in("y")), entry(t, "b@h2:1", in("x"))}, nil, []string{"", "y", "x"}},
	} {
		members, _ := parseMembers(tt.entries)
		c.members.Store(newMembership(members, tt.self, own, "", time.Now()))
		if got := []string{c.ZoneOf("me:1"), c.ZoneOf("h1:1"), c.ZoneOf("h2:1")}; !slices.Equal(got, tt.want) {
			t.Errorf("zones %q, want %q", got, tt.want)
		}
	}
}

// A cluster is mixed while it has a member of upstream's kind, whose znode has no settings.
func TestMixed(t *testing.T) {
	c := new(Cluster)
	mixed := func(entries ...zk.Entry) bool {
		members, _ := parseMembers(entries)
		c.members.Store(newMembership(members, &Member{ShardID: "me", Addr: "me:1", Settings: new(Settings)}, settings(nil), "", time.Now()))
		return c.Mixed()
	}
	a := entry(t, "a@h1:1", settings(nil))
	if mixed() || mixed(a) {
		t.Error("without nodes of upstream's kind it is mixed")
	}
	if !mixed(a, zk.Entry{Name: "b@h2:1"}) {
		t.Error("with one it is not")
	}
}
