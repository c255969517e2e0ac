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
	// statusTimeout bounds the wait for the status of other nodes.
	statusTimeout = time.Second
	// maxStatus and maxMembers bound what one node may say: bytes, and members of JSON objects. maxSurvey bounds the
	// bytes of all nodes together.
	maxStatus  = 16 << 20
	maxMembers = 1 << 19
	maxSurvey  = 128 << 20
	// maxAnswer bounds the header of an answer, in bytes.
	maxAnswer = 64 << 10
	// statusAtOnce is how many nodes are asked at a time.
	statusAtOnce = 64
)

// A Peer is another node of the cluster.
type Peer struct {
	Addr    string `json:"-"` // host:port
	ShardID string `json:"shard_id"`
	Zone    string `json:"zone,omitempty"`
	// Error is why it has not said how it is.
	Error string `json:"error,omitempty"`
	// Build, StartedAt and Disk are what it says of itself.
	Build     string    `json:"build,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Disk      Disk      `json:"disk,omitzero"`
}

// survey asks other nodes how they are.
type survey struct {
	peers    func() []Peer
	client   *http.Client
	scheme   string
	patience time.Duration // for all of them
	secret   string        // shown to them; "": nothing

	decoding sync.Mutex // one status at a time is decoded, which takes several times its bytes
}

// answered is what one node has said.
type answered struct {
	Peer
	status Status
}

func newSurvey(peers func() []Peer, secure *tls.Config, secret string) *survey {
	t := &http.Transport{TLSClientConfig: secure, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: statusTimeout, MaxResponseHeaderBytes: maxAnswer}
	s := &survey{peers: peers, scheme: "http", patience: statusTimeout, secret: secret, client: &http.Client{
		Transport: t, Timeout: statusTimeout,
		// The credential of the cluster goes to the nodes alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if secure != nil {
		s.scheme = "https"
	}
	return s
}

// ask returns what the other nodes say.
func (s *survey) ask(ctx context.Context) []answered {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	peers, ration := s.peers(), new(atomic.Int64)
	ration.Store(maxSurvey)
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

func (s *survey) askOne(ctx context.Context, p Peer, ration *atomic.Int64) answered {
	a := answered{Peer: p}
	if err := s.get(ctx, p.Addr, ration, &a.status); err != nil {
		var wrapped *url.Error // says whom it has asked for what, which is known
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

func (s *survey) get(ctx context.Context, addr string, ration *atomic.Int64, st *Status) error {
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

// decode decodes the status of a node, unless it is too much.
func (s *survey) decode(ctx context.Context, body []byte, st *Status) error {
	switch {
	case len(body) > maxStatus:
		return fmt.Errorf("its status is longer than %d MiB", maxStatus>>20)
	case bytes.Count(body, []byte{':'}) > maxMembers: // those in strings are counted, too
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

// rationed is a Reader that several share bytes with.
type rationed struct {
	io.Reader
	left *atomic.Int64
}

// Read implements io.Reader.
func (r *rationed) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("the nodes have said more than %d MiB together", maxSurvey>>20)
	}
	return n, err
}

func (s *survey) close() { s.client.CloseIdleConnections() }

// merge adds what other nodes have said to what this one knows.
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

// merge adds what the node of an address says of a db. Of what only others
// know, this node shows what they say; own are the versions that it knows.
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

// existing returns those of the partitions that a version of n partitions has, each
// once. The slice stays as it is: others who look at the status have it, too.
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

// maxShown bounds the partitions of a version that only others know: no version has
// more (load.MaxPartitions).
const maxShown = 1 << 16

// cluster is the status with what the other nodes say of themselves.
func (s *Server) cluster() (st Status, level string) {
	st = s.own()
	st.merge(s.survey.ask(s.ending))
	return st, s.complete(&st)
}

// statusFor returns the status that a request is answered from: of the cluster,
// or of this node alone if it is the only one or another node asks.
func (s *Server) statusFor(r *http.Request) *snapshot {
	if s.survey == nil || fromPeer([]byte(r.URL.RawQuery)) {
		return s.ownStatus
	}
	return s.clusterStatus
}
