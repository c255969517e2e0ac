// Package peerstatus fetches the status of the other nodes of a cluster, GET /?proxy=status, for the status of the whole, and their settings,
// GET /?proxy=settings: from all at once, within a second, and with limits on what they say. Package status merges and compares the answers; a Comparer
// compares the settings every half minute.
package peerstatus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sequins/internal/parallel"
	"sequins/internal/wire"
	"sequins/observe/status"
)

const (
	// statusTimeout limits the wait for the status of other nodes.
	statusTimeout = time.Second
	// maxStatus and maxElements limit the status of one node: in bytes, and in members of objects and elements of arrays, which may take
	// 30 times their bytes in memory. 8 versions of the maximum of partitions fit. maxAllStatus and maxAllElements limit all nodes together,
	// each of which has an equal share.
	maxStatus      = 16 << 20
	maxElements    = 1 << 20
	maxAllStatus   = 128 << 20
	maxAllElements = 1 << 22
	// statusAtOnce is the number of nodes asked in parallel.
	statusAtOnce = 64
)

// Client fetches the status of the other nodes. It is safe for concurrent use.
type Client struct {
	peers   func() []status.Peer
	nodes   *wire.Client
	timeout time.Duration // for all nodes together

	decoding sync.Mutex // held while a status is decoded, which takes several times its size in memory
}

// New returns a client that asks the nodes that peers returns.
func New(peers func() []status.Peer, nodes *wire.Client) *Client {
	return &Client{peers: peers, nodes: nodes, timeout: statusTimeout}
}

// limits are those of the status of one node.
type limits struct{ bytes, elements int }

func share(nodes int) limits {
	return limits{min(maxStatus, maxAllStatus/max(1, nodes)), min(maxElements, maxAllElements/max(1, nodes))}
}

// Ask returns the answers of the other nodes: their status, or an error in one line.
func (c *Client) Ask(ctx context.Context) []status.Answer { return c.askAll(ctx, "status") }

// Settings returns the settings of the other nodes, by address. Those that do not answer are left out.
func (c *Client) Settings(ctx context.Context) map[string]status.Settings {
	all := make(map[string]status.Settings)
	for _, a := range c.askAll(ctx, "settings") {
		if a.Error == "" {
			all[a.Addr] = a.Status.Settings
		}
	}
	return all
}

// askAll asks all nodes for their status, or a part of it.
func (c *Client) askAll(ctx context.Context, part string) []status.Answer {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	peers := c.peers()
	answers := make([]status.Answer, len(peers))
	_ = parallel.Run(context.Background(), statusAtOnce, len(peers), func(_ context.Context, i int) error { // also when ctx has ended, for its error
		answers[i] = c.askOne(ctx, peers[i], part, share(len(peers)))
		return nil
	})
	return answers
}

func (c *Client) askOne(ctx context.Context, p status.Peer, part string, most limits) status.Answer {
	a := status.Answer{Peer: p}
	if err := c.get(ctx, p.Addr, part, most, &a.Status); err != nil {
		if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
			err = op.Err // op adds the address, which is known
		}
		a.Error = strings.Join(strings.Fields(err.Error()), " ")
		a.Status = status.Status{}
	}
	return a
}

func (c *Client) get(ctx context.Context, addr, part string, most limits, st *status.Status) error {
	resp, err := c.nodes.Get(ctx, addr, "/?proxy="+part, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode == http.StatusForbidden {
		return fmt.Errorf("it answers with %s: its sharding.secret is another one", resp.Status)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most.bytes)+1))
	switch {
	case err != nil:
		return fmt.Errorf("its status cannot be read: %w", err)
	case len(body) > most.bytes:
		return fmt.Errorf("its status is longer than %d KiB", most.bytes>>10)
	case bytes.Count(body, []byte{','}) > most.elements: // also counts commas in strings
		return fmt.Errorf("its status has more than %d elements", most.elements)
	}
	c.decoding.Lock()
	defer c.decoding.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := json.Unmarshal(body, st); err != nil {
		return fmt.Errorf("its status cannot be read: %w", err)
	}
	return nil
}
