package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/shard"
	"sequins/store"
)

var (
	// errRefused is the class of errors for blocks that are not what they should be. The same node would send the same again.
	errRefused = errors.New("the block is refused")
	// errElsewhere is the class of errors if the node does not have what it is asked for, or gives nothing, as nodes of upstream's kind.
	errElsewhere = errors.New("the node does not have it")
	// errBusy is the error if the node gives as many blocks as it may.
	errBusy = errors.New("the node is giving as many blocks as it may")
	// errDisk is the class of errors that are of this node's disk.
	errDisk = errors.New("the block cannot be written")
)

// maxText limits what is read of the reason of a refusal, in bytes.
const maxText = 200

// about returns the target of a request for a content of a db.
func about(db string, c content.Content, query string) string {
	return "/" + url.PathEscape(db) + "?" + query + "&proxy=" + url.QueryEscape(c.Name)
}

// fetch copies the block of a partition of a content from a node, verifies it, and publishes it into the content's directory. Errors wrap one of this
// package's, or are those of the connection or of ctx.
func (t *Transfer) fetch(ctx context.Context, addr string, dir *store.Dir, partition int, by shard.Partitioner) (err error) {
	t.o.Metrics.Streams.Add(1, "received")
	defer t.o.Metrics.Streams.Add(-1, "received")
	m := dir.Manifest()
	taking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		if ctx.Err() == nil && !errors.Is(err, errBusy) && !errors.Is(err, errElsewhere) {
			ended := t.o.Metrics.Blocks
			if err != nil {
				ended = t.o.Metrics.Refused
			}
			ended.Add(1, m.DB)
		}
	}()
	resp, err := t.o.Nodes.Get(taking, addr, about(m.DB, m.Content(), "block="+strconv.Itoa(partition)), m.Content().Code())
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if err := accepts(resp, m.Content().Code()); err != nil {
		return err
	}
	// Nothing but the other node vouches for the length. A disk that has no room for the block has none for a load either, whose
	// estimate and reason are this node's own.
	if err := t.o.Fits(resp.ContentLength); err != nil {
		return fmt.Errorf("%w: it announces %d bytes: %w", errRefused, resp.ContentLength, err)
	}
	to := dir.Staging()
	out, err := to.CreateBlock(partition)
	if err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	hash := blocks.NewHash(resp.ContentLength)
	err = t.receive(taking, cancel, m.DB, resp, io.MultiWriter(out, hash))
	if err == nil {
		err = verify(ctx, out.Name(), hash, m, partition, by)
	}
	if err != nil {
		return errors.Join(err, to.DiscardBlock(out))
	}
	if err := to.FinishBlock(out); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	if err := dir.Publish(to, partition); err != nil {
		return fmt.Errorf("%w: %w", errDisk, errors.Join(err, to.RemoveBlock(partition)))
	}
	return nil
}

// accepts checks the header of the answer to the request for a block of a content.
func accepts(resp *http.Response, code string) error {
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return errBusy
	case resp.StatusCode == http.StatusNotFound:
		return errElsewhere
	case resp.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
		return fmt.Errorf("it answers with %s: %q", resp.Status, text)
	case resp.Header.Get("Content-Type") != blockType:
		return errElsewhere // a node of upstream's kind
	case resp.Header.Get(wire.Content) != code:
		return fmt.Errorf("%w: it is of content %.100q, and not %q", errRefused, resp.Header.Get(wire.Content), code)
	case resp.ContentLength <= 0:
		return fmt.Errorf("%w: its length is not known", errRefused)
	}
	return nil
}

// verify checks a received block, whose bytes hash has hashed.
func verify(ctx context.Context, path string, hash *blocks.Hash, m store.Manifest, partition int, by shard.Partitioner) error {
	r, err := blocks.Open(path)
	if err == nil {
		err = errors.Join(r.CheckCopy(ctx, hash, partition, m.Partitions, by.Partition), r.Close())
	}
	if damage, is := errors.AsType[*blocks.CorruptError](err); is {
		damage.Path = "the copy" // which is removed
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case blocks.IsDamage(err):
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return fmt.Errorf("%w: %w", errDisk, err)
}

// receive copies the body of an answer, and cancels the request when the node is too slow: the time until each read returns counts
// against it.
func (t *Transfer) receive(ctx context.Context, cancel context.CancelCauseFunc, db string, resp *http.Response, out io.Writer) error {
	node := t.newPulse(t.take)
	late := time.AfterFunc(node.left, func() { cancel(errSlow) })
	defer late.Stop()
	buf, length := make([]byte, burst), resp.ContentLength
	for left := length; ; {
		late.Reset(node.left)
		start := time.Now()
		n, err := resp.Body.Read(buf)
		late.Stop()
		node.add(n, time.Since(start))
		if errors.Is(context.Cause(ctx), errSlow) {
			err = errSlow
		}
		t.o.Metrics.Received.Add(float64(n), db) // the last bytes may come with io.EOF
		if left -= int64(n); left < 0 {
			return fmt.Errorf("%w: it is longer than the %d bytes that were announced", errRefused, length)
		}
		if _, werr := out.Write(buf[:n]); werr != nil {
			return fmt.Errorf("%w: %w", errDisk, werr)
		}
		switch {
		case err == io.EOF && left == 0: //nolint:errorlint // as it comes from the body
			return nil
		case err != nil:
			return fmt.Errorf("the copy broke off after %d of %d bytes: %w", length-left, length, err)
		}
		if err := t.take.WaitN(ctx, n); err != nil {
			return err
		}
	}
}
