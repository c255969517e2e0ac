package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// statusTimeout limits the wait for the status of other nodes.
	statusTimeout = time.Second
	// maxStatus and maxMembers limit the status of one node, in bytes and in members of JSON objects.
	// maxAllStatus limits the bytes of all nodes together.
	maxStatus    = 16 << 20
	maxMembers   = 1 << 19
	maxAllStatus = 128 << 20
	// maxAnswer limits the header of an answer, in bytes.
	maxAnswer = 64 << 10
	// statusAtOnce is the number of nodes asked in parallel.
	statusAtOnce = 64
)

// A Peer is another node of the cluster.
type Peer struct {
	Addr    string `json:"-"` // host:port
	ShardID string `json:"shard_id"`
	Zone    string `json:"zone,omitempty"`
	// Error is the reason why its status is unknown.
	Error string `json:"error,omitempty"`
	// Build, StartedAt and Disk are from its status.
	Build     string    `json:"build,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Disk      Disk      `json:"disk,omitzero"`
}

// peerStatus fetches the status of the other nodes.
type peerStatus struct {
	peers   func() []Peer
	client  *http.Client
	scheme  string
	timeout time.Duration // for all nodes together
	secret  string        // sent to the nodes; may be ""

	decoding sync.Mutex // held while a status is decoded, which takes several times its size in memory
}

// answered is the status of one other node.
type answered struct {
	Peer
	status Status
}

func newPeerStatus(peers func() []Peer, secure *tls.Config, secret string) *peerStatus {
	t := &http.Transport{TLSClientConfig: secure, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: statusTimeout, MaxResponseHeaderBytes: maxAnswer}
	s := &peerStatus{peers: peers, scheme: "http", timeout: statusTimeout, secret: secret, client: &http.Client{
		Transport: t, Timeout: statusTimeout,
		// Do not send the credential of the cluster elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if secure != nil {
		s.scheme = "https"
	}
	return s
}

// ask returns the status of the other nodes.
func (s *peerStatus) ask(ctx context.Context) []answered {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	peers, ration := s.peers(), new(atomic.Int64)
	ration.Store(maxAllStatus)
	answers := make([]answered, len(peers))
	slots := make(chan struct{}, statusAtOnce)
	var all sync.WaitGroup
	for i, p := range peers {
		slots <- struct{}{}
		all.Go(func() {
			answers[i] = s.askOne(ctx, p, ration)
			<-slots
		})
	}
	all.Wait()
	return answers
}

func (s *peerStatus) askOne(ctx context.Context, p Peer, ration *atomic.Int64) answered {
	a := answered{Peer: p}
	if err := s.get(ctx, p.Addr, ration, &a.status); err != nil {
		var wrapped *url.Error // adds method and URL, which are known
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		a.Error = oneLine(err.Error())
		a.status = Status{}
		return a
	}
	a.Build, a.StartedAt, a.Disk = a.status.Build, a.status.StartedAt, a.status.Disk
	return a
}

func (s *peerStatus) get(ctx context.Context, addr string, ration *atomic.Int64, st *Status) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.scheme+"://"+addr+"/?proxy=status", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if s.secret != "" {
		req.Header.Set(keySecret, s.secret)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with %s", resp.Status)
	}
	body, err := io.ReadAll(&rationed{Reader: io.LimitReader(resp.Body, maxStatus+1), left: ration})
	if err != nil {
		return fmt.Errorf("its status cannot be read: %w", err)
	}
	return s.decode(ctx, body, st)
}

// decode decodes the status of a node, unless it is too large.
func (s *peerStatus) decode(ctx context.Context, body []byte, st *Status) error {
	switch {
	case len(body) > maxStatus:
		return fmt.Errorf("its status is longer than %d MiB", maxStatus>>20)
	case bytes.Count(body, []byte{':'}) > maxMembers: // also counts colons in strings
		return fmt.Errorf("its status has more than %d fields", maxMembers)
	}
	s.decoding.Lock()
	defer s.decoding.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := json.Unmarshal(body, st); err != nil {
		return fmt.Errorf("its status cannot be read: %w", err)
	}
	return nil
}

// rationed is a Reader whose bytes count against a shared budget.
type rationed struct {
	io.Reader
	left *atomic.Int64
}

// Read implements io.Reader.
func (r *rationed) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("the nodes have said more than %d MiB together", maxAllStatus>>20)
	}
	return n, err
}

func (s *peerStatus) close() { s.client.CloseIdleConnections() }

// merge adds the status of other nodes to that of this one.
func (st *Status) merge(answers []answered) {
	st.Peers = make(map[string]Peer, len(answers))
	own := make(map[string]map[string]VersionStatus, len(st.DBs))
	for db, ours := range st.DBs {
		own[db] = maps.Clone(ours.Versions)
	}
	for _, a := range answers {
		st.Peers[a.Addr] = a.Peer
		for db, theirs := range a.status.DBs {
			st.DBs[db] = st.DBs[db].merge(theirs, a.Addr, own[db])
		}
	}
}

// merge adds the status of a db on the node at addr. For versions that this node does not know, the other
// node's description is used; own are the versions that this node knows.
func (d DBStatus) merge(theirs DBStatus, addr string, own map[string]VersionStatus) DBStatus {
	if d.Versions == nil {
		d.Versions = make(map[string]VersionStatus)
	}
	for name, v := range theirs.Versions {
		n, here := v.Nodes[addr]
		if !here {
			continue
		}
		ours, known := d.Versions[name]
		if !known {
			ours = VersionStatus{Path: v.Path, TargetReplication: v.TargetReplication}
		}
		if ours.Nodes == nil {
			ours.Nodes = make(map[string]NodeStatus)
		}
		if own[name].NumPartitions == 0 {
			ours.NumPartitions = max(ours.NumPartitions, min(v.NumPartitions, maxShown))
		}
		n.Partitions = existing(n.Partitions, ours.NumPartitions)
		ours.Nodes[addr] = n
		d.Versions[name] = ours
	}
	return d
}

// existing returns the partitions that a version of n partitions has, without duplicates. It does not modify
// the slice, which other readers of the status share.
func existing(partitions []int, n int) []int {
	partitions = partitions[:min(len(partitions), n)]
	seen := make(map[int]bool, len(partitions))
	strange := func(p int) bool {
		odd := p < 0 || p >= n || seen[p]
		seen[p] = true
		return odd
	}
	return slices.DeleteFunc(slices.Clone(partitions), strange)
}

// maxShown limits the number of partitions of a version that only other nodes know. No version has more
// (load.MaxPartitions).
const maxShown = 1 << 16

// cluster returns the status of this node merged with that of the other nodes.
func (s *Server) cluster() (st Status, level string) {
	st = s.own()
	st.merge(s.peerStatus.ask(s.ending))
	return st, s.complete(&st)
}

// statusFor returns the status to answer a request from: that of the cluster, or of this node alone on a
// single node and for requests of other nodes.
func (s *Server) statusFor(r *http.Request) *snapshot {
	if s.peerStatus == nil || fromPeer([]byte(r.URL.RawQuery)) {
		return s.ownStatus
	}
	return s.clusterStatus
}
