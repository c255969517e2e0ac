package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sequins/blocks"
	"sequins/version"
)

// statusClientGone is nginx's code for a client that went away. It is seen in
// the log and the metrics only.
const statusClientGone = 499

// serveKey answers GET /<db>/<key>.
func (r *request) serveKey() {
	s := r.s
	asked, err := proxyOf(r.target.query)
	if err != nil {
		r.fail(http.StatusBadRequest, err.Error())
		return
	}
	r.counts = s.opts.Metrics.Unknown.Of(len(asked) > 0)
	set := s.catalog.Set(r.target.db)
	if set == nil {
		if s.catalog.MayExist(r.target.db) {
			r.unready(len(asked) > 0)
		} else {
			r.absent(len(asked) > 0)
		}
		return
	}
	r.acquire(set, asked, r.ctx.Request.Header.Peek(keyPlan))
	if r.handle == nil {
		r.unready(len(asked) > 0)
		return
	}
	if len(r.target.query) > 0 && explains(r.target.query) {
		r.explain(len(asked) > 0)
		return
	}
	r.get(r.db.head(s, r.handle), len(asked) > 0)
}

// acquire takes the db that has been found, and the version of it that is asked for: the
// current one, or what a peer names; r.handle stays nil if it is not here, or not by the plan
// that the peer names.
func (r *request) acquire(set *version.Set, asked, plan []byte) {
	r.db = r.s.database(r.target.db)
	r.counts = r.db.counts.Of(len(asked) > 0)
	if len(asked) == 0 || string(asked) == "true" {
		r.handle = set.Acquire()
	} else {
		r.handle = set.AcquireVersion(string(asked))
	}
	if r.handle != nil && len(asked) > 0 && len(plan) > 0 && r.handle.Plan() != "" && string(plan) != r.handle.Plan() {
		r.handle.Release()
		r.handle = nil
	}
}

// absent answers where there is no db or no version of it. A peer has to be
// told from a client: it would take 404 for the key's.
func (r *request) absent(proxied bool) {
	if proxied {
		r.fail(http.StatusNotImplemented, "the db or the version is not here")
		return
	}
	r.fail(http.StatusNotFound, "no such db")
}

// unready answers where no version of a db can be read yet. 404 would deny keys
// that exist, so the client is told to come back.
func (r *request) unready(proxied bool) {
	if proxied {
		r.absent(proxied)
		return
	}
	r.ctx.Response.Header.Set("Retry-After", "1")
	r.fail(http.StatusServiceUnavailable, "no version of this db can be read on this node yet")
}

// get looks the key up in the version that r holds. A request is proxied if it
// comes from a peer.
func (r *request) get(h *heads, proxied bool) {
	if r.handle.Partitions() == 0 {
		r.notFound(h)
		return
	}
	p := r.handle.Partition(r.target.key)
	v, ok, err := r.lookUp(p)
	if err == nil && ok {
		err = r.answer(h, p, v)
	}
	switch {
	case err != nil:
		r.elsewhere(h, p, proxied, err)
	case !ok:
		r.notFound(h)
	}
}

// lookUp looks the key up in its partition, as far as that is here.
func (r *request) lookUp(partition int) (blocks.Value, bool, error) {
	v, ok, err := r.handle.Get(partition, r.target.key, &r.scratch)
	if r.logged {
		r.lookup = time.Since(r.start)
	}
	return v, ok, err
}

// notFound is the answer for a key that is not in the version.
func (r *request) notFound(h *heads) {
	r.ctx.Response.Header.SetCanonical(keyVersion, h.versionValue)
	r.fail(http.StatusNotFound, noSuchKey)
}

const noSuchKey = "no such key"

// elsewhere answers for a partition that cannot be read here, because of err:
// from a peer, or with the reason why not.
func (r *request) elsewhere(h *heads, partition int, proxied bool, err error) {
	unreadable := !errors.Is(err, version.ErrNotLocal)
	if unreadable {
		r.broken(partition, err)
	}
	if peers := r.peers(partition, proxied); len(peers) > 0 {
		if err = r.fetch(h, peers); err == nil {
			return
		}
	}
	r.ctx.Response.Header.SetCanonical(keyVersion, h.versionValue)
	r.fail(unanswered(unreadable || r.alone(proxied), proxied, err))
}

// unanswered is what a key gets that could neither be looked up here nor
// elsewhere. unreadable: its block is damaged or, where there are no other nodes,
// lost. err is from the peers if any were asked.
func unanswered(unreadable, proxied bool, err error) (code int, message string) {
	switch {
	case unreadable:
		return http.StatusInternalServerError, "the block of this key cannot be read"
	case proxied:
		return http.StatusNotImplemented, "this key's partition is not here"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "the nodes that have this key's partition took too long"
	case errors.Is(err, context.Canceled):
		return statusClientGone, "the request was given up"
	}
	return http.StatusBadGateway, "no node that can be reached has this key's partition"
}

// alone reports whether no other node can have what is not here.
func (r *request) alone(proxied bool) bool { return r.s.opts.Proxy == nil && !proxied }

// peers are the nodes that may be asked. A proxied request is never proxied on.
func (r *request) peers(partition int, proxied bool) []string {
	if proxied || r.s.opts.Proxy == nil {
		return nil
	}
	return r.handle.Peers(partition)
}

// broken logs that a block could not be read.
func (r *request) broken(partition int, err error) {
	r.s.trouble("reading a block", "target", r.escaped(), "version", r.handle.Version(), "partition", partition, "error", err)
}
