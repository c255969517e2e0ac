package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/shard"
	"sequins/store"
)

var (
	// ErrRefused is the class of errors of Fetch for blocks that are not what they should be. The same node would send the same again.
	ErrRefused = errors.New("the block is refused")
	// ErrElsewhere is the class of errors of Fetch if the node does not have the block, or not by the plan.
	ErrElsewhere = errors.New("the node does not have the block")
	// ErrBusy is the class of errors of Fetch if the node gives as many blocks as it may.
	ErrBusy = errors.New("the node is giving as many blocks as it may")
	// ErrCrowded is the class of errors of Fetch if this node has been receiving as many blocks as it may for too long.
	ErrCrowded = errors.New("this node is receiving as many blocks as it may")
	// ErrUnable is the class of errors of Ask for nodes that do not give blocks, such as those of older releases.
	ErrUnable = errors.New("the node does not give blocks")
	// ErrDisk is the class of errors of Fetch that are of this node's disk.
	ErrDisk = errors.New("the block cannot be written")
)

// maxText limits what is read of the reason of a refusal, in bytes.
const maxText = 200

// A size limits the State in an answer: its bytes, and the objects and commas of its JSON, whose elements may take 30 times their bytes in memory.
type size struct {
	bytes           int64
	objects, commas int
}

// The sizes of what is asked for: the numbers of partitions, what the blocks were made from, and the plan, of up to 1<<18 files, in whose names
// there may be braces and commas.
var (
	ofNumbers  = size{2 << 20, 1, 2*shard.MaxPartitions + 16}
	ofInputs   = size{68 << 20, shard.MaxPartitions + 1, 8*shard.MaxPartitions + 16}
	ofManifest = size{68 << 20, 1 << 19, 1 << 21}
)

// read decodes a State.
func (z size) read(r io.Reader) (s State, err error) {
	data, err := io.ReadAll(io.LimitReader(r, z.bytes+1))
	switch {
	case err != nil:
		return s, err
	case int64(len(data)) > z.bytes || bytes.Count(data, []byte("{")) > z.objects || bytes.Count(data, []byte(",")) > z.commas:
		return s, errors.New("it is too large")
	}
	return s, json.Unmarshal(data, &s)
}

// get sends a request for a version of a db. The caller closes the body.
func (t *Transfer) get(ctx context.Context, addr, db, version, plan, query string) (*http.Response, error) {
	target := fmt.Sprintf("%s://%s/%s?%s&proxy=%s", t.scheme, addr, url.PathEscape(db), query, url.QueryEscape(version))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	if t.o.Secret != "" {
		req.Header.Set(SecretHeader, t.o.Secret)
	}
	if plan != "" {
		req.Header.Set(PlanHeader, plan)
	}
	return t.client.Do(req)
}

// Ask asks a node what it has of a version by a plan; "true" is its current version, and an empty plan is any. manifest also asks for the
// plan itself. Errors wrap ErrUnable or are those of the connection.
func (t *Transfer) Ask(ctx context.Context, addr, db, version, plan string, manifest bool) (State, error) {
	if manifest {
		return t.ask(ctx, addr, db, version, plan, "blocks&manifest", ofManifest)
	}
	return t.ask(ctx, addr, db, version, plan, "blocks", ofNumbers)
}

// Inputs asks a node what it has of a version by a plan, with what the blocks were made from. Errors are those of Ask.
func (t *Transfer) Inputs(ctx context.Context, addr, db, version, plan string) (State, error) {
	s, err := t.ask(ctx, addr, db, version, plan, "blocks&inputs", ofInputs)
	s.Inputs = slices.DeleteFunc(s.Inputs, func(in store.Input) bool { return !in.Valid() })
	return s, err
}

func (t *Transfer) ask(ctx context.Context, addr, db, version, plan, query string, most size) (State, error) {
	resp, err := t.get(ctx, addr, db, version, plan, query)
	if err != nil {
		return State{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return State{}, fmt.Errorf("it answers with %s", resp.Status)
	case resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != stateType:
		return State{}, fmt.Errorf("%w: it answers with %s", ErrUnable, resp.Status)
	}
	s, err := most.read(resp.Body)
	if err != nil {
		return State{}, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if m := s.Manifest; m != nil && (m.DB != db || m.PlanHash() != s.Plan) {
		return State{}, fmt.Errorf("its manifest of version %s of %s is of another plan than it names", m.Version, m.DB)
	}
	return s, nil
}

// A Want is a block that is wanted.
type Want struct {
	DB, Version string // the version's name in the source
	Partition   int
	Plan        string // of the manifest of Dir
	Partitioner shard.Partitioner
	Dir         *store.Dir // of the plan; the block is published into it
}

// Fetch copies a block from a node, verifies and publishes it. It waits until fewer blocks are being received than may be. Errors wrap one of
// this package's, or are those of the connection or of ctx. Those that are not of ctx, ErrBusy, ErrCrowded or ErrElsewhere are logged.
func (t *Transfer) Fetch(ctx context.Context, addr string, w Want) error {
	if err := t.take.wait(ctx, t.o.Queue); err != nil {
		return err
	}
	defer t.take.leave()
	defer t.o.Metrics.Stream("received")()
	err := t.fetch(ctx, addr, w)
	switch {
	case err == nil:
		t.o.Metrics.Ended(w.DB, true)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrBusy) || errors.Is(err, ErrElsewhere):
	default:
		t.o.Metrics.Ended(w.DB, false)
		t.o.Logger.Warn("a block of another node is not used", "peer", addr, "db", w.DB, "version", w.Version, "partition", w.Partition, "error", err)
	}
	return err
}

func (t *Transfer) fetch(ctx context.Context, addr string, w Want) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := t.get(ctx, addr, w.DB, w.Version, w.Plan, "block="+strconv.Itoa(w.Partition))
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if err := w.accepts(resp); err != nil {
		return err
	}
	if t.o.Fits != nil {
		// Nothing but the other node vouches for the length. A disk that has no room for the block has none for a load either, whose
		// estimate and reason are this node's own.
		if err := t.o.Fits(resp.ContentLength); err != nil {
			return fmt.Errorf("%w: it announces %d bytes: %w", ErrRefused, resp.ContentLength, err)
		}
	}
	to := w.Dir.Staging()
	out, err := to.CreateBlock(w.Partition)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	in := newReceiver(t, ctx, cancel, w.DB, resp.Body)
	defer in.stop()
	if err := in.copy(out, resp.ContentLength); err != nil {
		return errors.Join(err, to.DiscardBlock(out))
	}
	name := out.Name()
	if err := to.FinishBlock(out); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if err := w.verify(ctx, name); err != nil {
		return errors.Join(err, to.RemoveBlock(w.Partition))
	}
	if err := w.Dir.Publish(to, w.Partition); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, errors.Join(err, to.RemoveBlock(w.Partition)))
	}
	return nil
}

// accepts checks the header of the answer to the request for a block.
func (w *Want) accepts(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return ErrBusy
	case http.StatusNotFound, http.StatusConflict:
		return ErrElsewhere
	default:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
		return fmt.Errorf("%w: it answers with %s: %q", ErrElsewhere, resp.Status, text)
	}
	switch {
	case resp.Header.Get("Content-Type") != blockType:
		return ErrElsewhere // an older release
	case resp.Header.Get(PlanHeader) != w.Plan:
		return fmt.Errorf("%w: it has the plan %q, and not %q", ErrRefused, resp.Header.Get(PlanHeader), w.Plan)
	case resp.ContentLength <= 0:
		return fmt.Errorf("%w: its length is not known", ErrRefused)
	}
	return nil
}

// verify checks a received block as a whole.
func (w *Want) verify(ctx context.Context, path string) error {
	r, err := blocks.Open(path)
	if err == nil {
		err = w.check(ctx, r)
		err = errors.Join(err, r.Close())
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case blocks.IsDamage(err):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}

func (w *Want) check(ctx context.Context, r *blocks.Reader) error {
	m := w.Dir.Manifest()
	if p := r.Properties(); p.Partition != w.Partition || p.Partitions != m.Partitions {
		return fmt.Errorf("%w: it is partition %d of %d, and not %d of %d", blocks.ErrCorrupt, p.Partition, p.Partitions, w.Partition, m.Partitions)
	}
	return r.VerifyKeys(ctx, func(key []byte) error {
		if p := w.Partitioner.Partition(key, m.Partitions); p != w.Partition {
			return fmt.Errorf("a key belongs to partition %d", p)
		}
		return nil
	})
}

// A receiver is the body of an answer with a block. It cancels the request when the node is too slow.
type receiver struct {
	t      *Transfer
	ctx    context.Context
	cancel context.CancelFunc
	db     string
	body   io.Reader

	began    time.Time
	received int64 // bytes

	mu   sync.Mutex
	slow bool
	late *time.Timer
	pulse
}

func newReceiver(t *Transfer, ctx context.Context, cancel context.CancelFunc, db string, body io.Reader) *receiver {
	r := &receiver{t: t, ctx: ctx, cancel: cancel, db: db, body: body, began: time.Now(), pulse: t.newPulse()}
	r.late = time.AfterFunc(r.left, r.timeout)
	return r
}

// timeout ends the request.
func (r *receiver) timeout() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = true
	r.cancel()
}

func (r *receiver) stop() { r.late.Stop() }

// copy writes a body of a length to a file.
func (r *receiver) copy(out fsys.File, length int64) error {
	buf := make([]byte, burst)
	for left := length; ; {
		n, err := r.read(buf)
		r.t.o.Metrics.Received(r.db, n) // the last bytes may come with io.EOF
		if left -= int64(n); left < 0 {
			return fmt.Errorf("%w: it is longer than the %d bytes that were announced", ErrRefused, length)
		}
		if _, werr := out.Write(buf[:n]); werr != nil {
			return fmt.Errorf("%w: %w", ErrDisk, werr)
		}
		switch {
		case err == io.EOF && left == 0: //nolint:errorlint // as it comes from the body
			return nil
		case err != nil:
			return fmt.Errorf("the copy broke off after %d of %d bytes: %w", length-left, length, err)
		}
		if err := r.t.take.rate.WaitN(r.ctx, n); err != nil {
			return err
		}
	}
}

// read reads at most a buffer. The time until it returns counts against the node.
func (r *receiver) read(buf []byte) (int, error) {
	r.late.Reset(r.left)
	start := time.Now()
	n, err := r.body.Read(buf)
	r.late.Stop()
	r.mu.Lock()
	slow := r.slow
	r.mu.Unlock()
	r.received += int64(n)
	if fast := r.add(n, time.Since(start)); slow || err == nil && (!fast || r.hinders()) {
		err = errSlow
	}
	return n, err
}

// hinders reports whether the copy is slower than this node's limits and FairRate explain, and keeps a place that another copy waits for.
func (r *receiver) hinders() bool {
	took := time.Since(r.began)
	return took > r.t.o.Patience && float64(r.received) < took.Seconds()*r.t.take.fair(r.t.o.FairRate) && r.t.take.isWanted()
}

// Current returns the plan of the version of a db that most of some nodes serve, or nil if none does, or the nodes do not answer.
// Of versions that as many nodes serve it is the greatest.
func (t *Transfer) Current(ctx context.Context, addrs []string, db string) *store.Manifest {
	ctx, cancel := context.WithTimeout(ctx, t.o.Patience/4)
	defer cancel()
	plans, votes := make(map[string]*store.Manifest), make(map[string]int)
	for _, s := range t.serving(ctx, addrs, db) {
		id := s.Version + " " + s.Plan
		s.Manifest.Version = s.Version // on that node it may be a revision
		plans[id] = s.Manifest
		votes[id]++
	}
	best := ""
	for id, n := range votes {
		if best == "" || n > votes[best] || n == votes[best] && id > best {
			best = id
		}
	}
	return plans[best]
}

// serving returns what those of some nodes serve of a db that answer with a plan.
func (t *Transfer) serving(ctx context.Context, addrs []string, db string) (all []State) {
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
		slots  = make(chan struct{}, surveyedAtOnce)
	)
	for _, addr := range addrs {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			s, err := t.Ask(ctx, addr, db, "true", "", true)
			if err != nil || s.Manifest == nil || s.Manifest.Partitions < 1 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, s)
		})
	}
	asking.Wait()
	return all
}
