package zk

import (
	"slices"
	"testing"
)

func names(c *Children) (names []string) {
	for _, e := range c.Entries() {
		names = append(names, e.Name)
	}
	return names
}

// What one session publishes, another sees, with data and as it changes.
func TestPublishAndWatch(t *testing.T) {
	e := startEnsemble(t, "")
	a, b := e.session(t), e.session(t)
	nodes := b.Watch(NodesDir, true)
	await(t, "the directory, which is not there, is listed", func() bool {
		select {
		case <-nodes.Seen():
			return true
		default:
			return false
		}
	})
	a.Publish(NodePath("a", "host-a:1"), []byte("one"))
	b.Publish(NodePath("b", "host-b:1"), nil)
	flush(t, a)
	flush(t, b)
	await(t, "both are seen", func() bool { return slices.Equal(names(nodes), []string{"a@host-a:1", "b@host-b:1"}) })
	if got := string(nodes.Entries()[0].Data); got != "one" {
		t.Errorf("data %q", got)
	}
	a.Publish(NodePath("a", "host-a:1"), []byte("two"))
	await(t, "the data is seen to change", func() bool { return string(nodes.Entries()[0].Data) == "two" })
	b.Unpublish(NodePath("b", "host-b:1"))
	await(t, "one is seen to go", func() bool { return slices.Equal(names(nodes), []string{"a@host-a:1"}) })
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the other is seen to go", func() bool { return len(nodes.Entries()) == 0 })
	select {
	case <-nodes.Changes():
	default:
		t.Error("no change was told")
	}
}

func TestManyPartitions(t *testing.T) {
	e := startEnsemble(t, "")
	a, b := e.session(t), e.session(t)
	dir := b.Watch(VersionDir("db", "1"), false)
	for p := range 10_000 {
		a.Publish(PartitionPath("db", "1", p, "host-a:1"), nil)
	}
	flush(t, a)
	await(t, "all are seen", func() bool { return len(dir.Entries()) == 10_000 })
	for p := range 10_000 {
		a.Unpublish(PartitionPath("db", "1", p, "host-a:1"))
	}
	flush(t, a)
	a.Prune(VersionDir("db", "1"))
	await(t, "none is seen", func() bool { return len(dir.Entries()) == 0 })
}
