package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"sequins/internal/fsys"
	"sequins/zk"
)

// A node without a configured shard id chooses the smallest number, from 1, that
// no member has: so a node that replaces another takes over its partitions. It
// claims the number as an ephemeral znode (zk.ShardIDPath), so that no two nodes
// choose the same, and keeps it in a file over restarts.
//
// A node that comes back claims the number that it remembers. Another node may
// have chosen that meanwhile, or remember it, too, where a disk was copied; or it
// is this node itself, by another address and in a session that has not expired
// yet. So the node waits for one session timeout for the number to be free, and
// then chooses another, and remembers that.

const (
	// maxShardID is the greatest number that a file is believed to hold.
	maxShardID = 1 << 20
	// maxShardIDFile bounds what is read of the file, in bytes.
	maxShardIDFile = 64
	// maxChoiceQuiet bounds how long the members have to stay the same before a
	// number is chosen.
	maxChoiceQuiet = 3 * time.Second
)

// chooseShardID returns a shard id that this node has claimed.
func (j *joining) chooseShardID(ctx context.Context) (string, error) {
	claims := j.o.Session.Watch(zk.ShardIDsDir, true)
	defer claims.Stop()
	if err := j.until(ctx, j.unseen(claims)); err != nil {
		return "", err
	}
	remembered := j.rememberedShardID()
	if remembered != "" {
		claimed, err := j.reclaim(ctx, remembered, claims)
		if claimed || err != nil {
			return remembered, err
		}
	}
	if err := j.until(ctx, j.quietly(max(min(j.o.Converge, maxChoiceQuiet), j.straggle()), j.nodes, claims)); err != nil {
		return "", err
	}
	id, err := j.claimSmallest(ctx, claims)
	if err != nil {
		return "", err
	}
	if remembered != "" {
		j.log.Warn("the shard id of this node's last life is another node's by now; this node takes another", "before", remembered, "shard_id", id)
	}
	if err := writeShardID(j.o.ShardIDFile, id); err != nil {
		j.log.Error("the shard id cannot be kept over a restart", "shard_id", id, "error", err)
	}
	return id, nil
}

// straggle is how long others may still be on their way that ZooKeeper has kept
// waiting like this node.
func (j *joining) straggle() time.Duration {
	if j.quiet > j.o.Converge {
		return j.quiet
	}
	return 0
}

// reclaim claims the shard id of this node's last life, once it is free.
func (j *joining) reclaim(ctx context.Context, id string, claims *zk.Children) (claimed bool, err error) {
	deadline := time.Now().Add(j.patience)
	free := false
	err = j.until(ctx, func() string {
		other := j.takenShardIDs(claims)[id]
		free = other == ""
		if free || time.Now().After(deadline) {
			return ""
		}
		return fmt.Sprintf("shard id %s, which %s has", id, other)
	})
	if err != nil || !free {
		return false, err
	}
	return j.claim(ctx, id)
}

func (j *joining) claim(ctx context.Context, id string) (claimed bool, err error) {
	err = j.o.Session.Claim(ctx, zk.ShardIDPath(id), []byte(j.o.Addr))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, zk.ErrTaken):
		return false, nil
	}
	return false, fmt.Errorf("claiming shard id %s: %w", id, err)
}

// claimSmallest claims the smallest shard id that is free.
func (j *joining) claimSmallest(ctx context.Context, claims *zk.Children) (string, error) {
	taken := j.takenShardIDs(claims)
	for n := 1; n <= maxShardID; n++ {
		id := strconv.Itoa(n)
		if taken[id] != "" {
			continue
		}
		if claimed, err := j.claim(ctx, id); claimed || err != nil {
			return id, err
		}
	}
	return "", errors.New("no shard id is free")
}

// takenShardIDs returns which other nodes have shard ids, members and those that
// have claimed one.
func (j *joining) takenShardIDs(claims *zk.Children) map[string]string {
	taken := make(map[string]string)
	members, _ := parseMembers(j.nodes.Entries())
	for _, m := range members {
		if m.Addr != j.o.Addr {
			taken[m.ShardID] = m.Addr
		}
	}
	for _, e := range claims.Entries() {
		if string(e.Data) != j.o.Addr {
			taken[e.Name] = "node " + string(e.Data)
		}
	}
	return taken
}

// rememberedShardID returns the shard id of this node's last life, "" if there is
// none that can be read.
func (j *joining) rememberedShardID() string {
	id, err := readShardID(j.o.ShardIDFile)
	if err != nil {
		j.log.Warn("the shard id of this node's last life cannot be read; another one is chosen", "error", err)
		return ""
	}
	return id
}

// readShardID reads the file with a shard id, as this release or the system that
// sequins replaces has written it; "" if there is none.
func readShardID(path string) (string, error) {
	data, err := fsys.ReadFile(fsys.OS, path, maxShardIDFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSuffix(string(data), "\n")
	if n, err := strconv.Atoi(id); err != nil || n < 1 || n > maxShardID || strconv.Itoa(n) != id {
		return "", fmt.Errorf("%s: %q is not a number from 1 to %d", path, id, maxShardID)
	}
	return id, nil
}

// writeShardID replaces the file with a shard id. There is no line end: the system that sequins replaces takes all of
// the file for the id.
func writeShardID(path, id string) error {
	f, err := fsys.OS.Create(path + ".tmp")
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(id)); err != nil {
		return errors.Join(err, f.Close(), fsys.OS.Remove(f.Name()))
	}
	return fsys.Publish(fsys.OS, f, path)
}
