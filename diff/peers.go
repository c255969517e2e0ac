package diff

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/blocks"
	"sequins/version"
)

// peers asks other nodes to compare partitions. It is safe for concurrent use.
type peers struct {
	Options
	client *http.Client
	scheme string
}

const (
	// headerTimeout limits the wait for the first line of a node, and idleTimeout that for each of the next ones.
	headerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	// maxLine limits a line of another node, in bytes: a key of 64 KiB, each byte escaped, or a report with a row for
	// each of 100,000 partitions.
	maxLine = 32 << 20
)

func newPeers(o Options) *peers {
	p := &peers{Options: o, scheme: "http", client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: o.TLS, ResponseHeaderTimeout: headerTimeout, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
		// Do not send the credential of the cluster elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if o.TLS != nil {
		p.scheme = "https"
	}
	return p
}

// nodes returns the addresses of the other nodes: first those that hold contents, whether or not they may serve them.
func (p *peers) nodes(of ...*version.Handle) (addrs []string) {
	add := func(addr string) {
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	for _, h := range of {
		for _, addr := range h.Holders() {
			add(addr)
		}
	}
	for _, other := range p.Peers() {
		add(other.Addr)
	}
	return addrs
}

// compare asks one node after the other for the partitions that are left. A node that fails is left out, unless a part
// of its list has been passed on already.
func (p *peers) compare(ctx context.Context, c *comparison, out *answer) error {
	if p.Peers == nil {
		return nil
	}
	for _, addr := range p.nodes(c.before, c.after) {
		for chunk := range slices.Chunk(slices.Clone(c.left), maxPartitions) {
			passed, err := p.ask(ctx, addr, chunk, c, out)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil && passed {
				return fmt.Errorf("node %s: %w", addr, err)
			}
			if err != nil {
				break
			}
		}
		if len(c.left) == 0 {
			return nil
		}
	}
	return p.compareApart(ctx, c, out)
}

// compareApart compares partitions whose blocks are on different nodes. Those that no node has, or that cannot be read,
// stay.
func (p *peers) compareApart(ctx context.Context, c *comparison, out *answer) error {
	for _, partition := range slices.Clone(c.left) {
		if partition < 0 {
			return nil
		}
		row, begun, err := p.compareOne(ctx, c, partition, out)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && begun && c.list:
			return fmt.Errorf("partition %d: %w", partition, err)
		case err != nil:
			continue
		}
		c.left = slices.DeleteFunc(c.left, func(p int) bool { return p == partition })
		if err := c.done(row, out); err != nil {
			return err
		}
	}
	return nil
}

// compareOne compares one partition, with the keys of other nodes. begun reports whether a difference has been passed on.
func (p *peers) compareOne(ctx context.Context, c *comparison, partition int, out *answer) (row Row, begun bool, err error) {
	row.Partition = partition
	old, closeOld, err := p.records(ctx, c, c.before, "old", partition)
	if err != nil {
		return row, false, err
	}
	defer closeOld()
	now, closeNow, err := p.records(ctx, c, c.after, "new", partition)
	if err != nil {
		return row, false, err
	}
	defer closeNow()
	var each emit
	if c.list {
		each = func(op Op, key []byte) error {
			begun = true
			return out.difference(op, key)
		}
	}
	err = row.compare(ctx, old, now, each)
	return row, begun, err
}

// errNobody means that no other node that answers has a partition.
var errNobody = errors.New("no node has it")

// records returns the records of a partition of one of the versions, from here or from another node.
func (p *peers) records(ctx context.Context, c *comparison, h *version.Handle, which string, partition int) (records, func(), error) {
	if b := h.Block(partition); b != nil {
		return local{b.IterWithin(nil, nil, span)}, func() {}, nil
	}
	for _, addr := range p.nodes(h) {
		ctx, cancel := context.WithCancel(ctx)
		resp, err := p.get(ctx, addr, []int{partition}, c, "&keys="+which) //nolint:bodyclose // remote.Close does
		if err != nil {
			cancel()
			continue
		}
		idle := time.AfterFunc(idleTimeout, cancel)
		r := &remote{r: bufio.NewReaderSize(resp.Body, 64<<10), body: resp.Body, stop: func() { idle.Stop(); cancel() },
			wait: func() { idle.Reset(idleTimeout) }}
		return r, r.Close, nil
	}
	return nil, nil, errNobody
}

// ask asks a node. passed reports whether lines of a partition that was not completed have been passed on.
func (p *peers) ask(ctx context.Context, addr string, partitions []int, c *comparison, out *answer) (passed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list := ""
	if c.list {
		list = "&list"
	}
	resp, err := p.get(ctx, addr, partitions, c, list)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	idle := time.AfterFunc(idleTimeout, cancel)
	defer idle.Stop()
	lines := newLines(resp.Body)
	for lines.Scan() {
		idle.Reset(idleTimeout)
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return passed, err
		}
		switch {
		case l.Error != "":
			return passed, errors.New(l.Error)
		case l.Report != nil:
			return false, nil
		case l.Difference != nil && len(l.Key) > blocks.MaxKey:
			err = fmt.Errorf("a key of %d bytes, more than %d", len(l.Key), blocks.MaxKey)
		case l.Difference != nil && c.list:
			passed = true
			err = out.difference(l.Op, l.Key)
		case l.Row != nil:
			passed = false
			if err = checkRow(l.Row, c.left); err == nil {
				c.left = slices.DeleteFunc(c.left, func(p int) bool { return p == l.Row.Partition })
				err = c.done(*l.Row, out)
			}
		}
		if err != nil {
			return passed, err
		}
	}
	if err := lines.Err(); err != nil {
		return passed, err
	}
	return passed, io.ErrUnexpectedEOF
}

// get asks a node about partitions. more are further parameters.
func (p *peers) get(ctx context.Context, addr string, partitions []int, c *comparison, more string) (*http.Response, error) {
	numbers := make([]string, len(partitions))
	for i, n := range partitions {
		numbers[i] = strconv.Itoa(n)
	}
	target := fmt.Sprintf("%s://%s/%s?diff=%s&contents=%s..%s&proxy=diff&of=%s", p.scheme, addr, url.PathEscape(c.db),
		url.QueryEscape(c.old+".."+c.new), c.before.Content().Code(), c.after.Content().Code(), strings.Join(numbers, ","))
	target += more
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	if p.Secret != "" {
		req.Header.Set("X-Sequins-Cluster", p.Secret)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("it answers with %s", resp.Status), resp.Body.Close())
	}
	return resp, nil
}
