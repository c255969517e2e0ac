package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"sequins/status"
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

// peerStatus fetches the status of the other nodes.
type peerStatus struct {
	peers   func() []status.Peer
	client  *http.Client
	scheme  string
	timeout time.Duration // for all nodes together
	secret  string        // sent to the nodes; may be ""

	decoding sync.Mutex // held while a status is decoded, which takes several times its size in memory
}

func newPeerStatus(peers func() []status.Peer, secure *tls.Config, secret string) *peerStatus {
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
func (s *peerStatus) ask(ctx context.Context) []status.Answer {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	peers, ration := s.peers(), new(atomic.Int64)
	ration.Store(maxAllStatus)
	answers := make([]status.Answer, len(peers))
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

func (s *peerStatus) askOne(ctx context.Context, p status.Peer, ration *atomic.Int64) status.Answer {
	a := status.Answer{Peer: p}
	if err := s.get(ctx, p.Addr, ration, &a.Status); err != nil {
		var wrapped *url.Error // adds method and URL, which are known
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		a.Error = oneLine(err.Error())
		a.Status = status.Status{}
		return a
	}
	a.Build, a.StartedAt, a.Disk = a.Status.Build, a.Status.StartedAt, a.Status.Disk
	return a
}

func (s *peerStatus) get(ctx context.Context, addr string, ration *atomic.Int64, st *status.Status) error {
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
func (s *peerStatus) decode(ctx context.Context, body []byte, st *status.Status) error {
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

// cluster returns the status of this node merged with that of the other nodes.
func (s *Server) cluster() (st status.Status) {
	st = s.own()
	st.Merge(s.peerStatus.ask(s.ending))
	s.complete(&st)
	return st
}

// statusFor returns the status to answer a request from: that of the cluster, or of this node alone on a
// single node and for requests of other nodes.
func (s *Server) statusFor(r *http.Request) *snapshot {
	if s.peerStatus == nil || fromPeer([]byte(r.URL.RawQuery)) {
		return s.ownStatus
	}
	return s.clusterStatus
}
