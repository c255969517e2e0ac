package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/fsys"
	"sequins/zk"
)

// A node without a configured shard id chooses the smallest number, from 1, that no member has: a node that replaces
// another takes over its partitions. It claims the number as an ephemeral znode (zk.ShardIDPath), so that no two nodes
// choose the same, and stores it in a file.
//
// A restarted node claims its stored number. Another node may have claimed it meanwhile, or may have the same file, if
// a disk was copied; or the claim is this node's own, with another address and a session that has not expired yet. So
// the node waits for the number to be free for one session timeout; then it chooses another and stores that.

const (
	// maxShardID is the greatest number accepted from the file.
	maxShardID = 1 << 20
	// maxShardIDFile bounds the size of the file, in bytes.
	maxShardIDFile = 64
	// maxChoiceQuiet bounds how long the members have to stay the same before a number is chosen.
	maxChoiceQuiet = 3 * time.Second
)

// chooseShardID returns a shard id that this node has claimed.
func (j *joining) chooseShardID(ctx context.Context) (string, error) {
	stored, err := readShardID(j.c.o.ShardIDFile)
	if err != nil {
		j.c.log.Warn("cannot read the stored shard id; choosing another", "error", err)
	}
	if stored != "" {
		var claimed bool
		var failed error
		deadline := time.Now().Add(j.c.patience)
		err := j.until(ctx, 0, func() string {
			if claimed, failed = j.claim(ctx, stored); claimed || failed != nil || time.Now().After(deadline) {
				return ""
			}
			return fmt.Sprintf("shard id %s, which another node has", stored)
		})
		if err = errors.Join(err, failed); claimed || err != nil {
			return stored, err
		}
	}
	if err := j.until(ctx, min(j.c.o.Converge, maxChoiceQuiet), func() string { return "" }); err != nil {
		return "", err
	}
	// Others that choose now wait anew, because of this node: it has to wait longer, or it joins without them.
	j.quiet += maxChoiceQuiet
	id, err := j.claimSmallest(ctx)
	if err != nil {
		return "", err
	}
	if stored != "" {
		j.c.log.Warn("another node has taken this node's shard id; chose another", "previous", stored, "shard_id", id)
	}
	_ = os.Remove(j.c.o.ShardIDFile + ".tmp") // a node that was killed may have left it
	// Without a newline: the original sequins uses the whole content as the id.
	if err := fsys.WriteFile(fsys.OS, j.c.o.ShardIDFile+".tmp", j.c.o.ShardIDFile, []byte(id)); err != nil {
		j.c.log.Error("cannot store the shard id for the next start", "shard_id", id, "error", err)
	}
	return id, nil
}

// claim claims a shard id unless another member has it. A node that has claimed it may not be a member yet.
func (j *joining) claim(ctx context.Context, id string) (claimed bool, err error) {
	if slices.ContainsFunc(j.c.members.Load().all, func(m Member) bool { return m.ShardID == id && m.Addr != j.c.o.Addr }) {
		return false, nil
	}
	err = j.c.o.Session.Claim(ctx, zk.ShardIDPath(id), []byte(j.c.o.Addr))
	if err == nil || errors.Is(err, zk.ErrTaken) {
		return err == nil, nil
	}
	return false, fmt.Errorf("claiming shard id %s: %w", id, err)
}

// claimSmallest claims the smallest free shard id.
func (j *joining) claimSmallest(ctx context.Context) (string, error) {
	for n := 1; n <= maxShardID; n++ {
		id := strconv.Itoa(n)
		if claimed, err := j.claim(ctx, id); claimed || err != nil {
			return id, err
		}
	}
	return "", errors.New("no shard id is free")
}

// readShardID reads a file with a shard id, as written by this release or the original sequins; "" if there is no file.
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
