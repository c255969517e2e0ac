package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/store"
)

// maxManifest is the size of an answer with a manifest, in bytes.
const maxManifest = 68 << 20

// askTimeout limits how long a node is asked something: one that hangs is a member of the cluster all the same.
const askTimeout = 3 * time.Second

// ask asks a node something, about a content unless code is "", and decodes the answer of at most limit bytes.
func (t *Transfer) ask(ctx context.Context, addr, target, code, mediaType string, limit int64, decode func([]byte) error) error {
	resp, err := t.o.Nodes.Get(ctx, addr, target, code)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != mediaType || resp.Header.Get(wire.Content) != code {
		return fmt.Errorf("%w: it answers with %s", errElsewhere, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errors.New("it is too large")
	}
	if err == nil {
		err = decode(data)
	}
	if err != nil {
		return fmt.Errorf("its answer cannot be read: %w", err)
	}
	return nil
}

// Manifest asks nodes, one after the other, for the manifest of a content, and returns it as one that is created now. Manifests of another content are
// refused.
func (t *Transfer) Manifest(ctx context.Context, addrs []string, db string, c content.Content) (store.Manifest, error) {
	failed := fmt.Errorf("no node has given the manifest of version %s of %s", c.Name, db)
	for _, addr := range addrs {
		var m store.Manifest
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		err := t.ask(asking, addr, about(db, c, "blocks"), c.Code(), manifestType, maxManifest, m.UnmarshalJSON)
		cancel()
		switch {
		case err != nil:
		case m.DB != db || m.Content() != c:
			err = fmt.Errorf("its manifest is that of content %.100s of version %.100s of %.100s", m.Content().Code(), m.Version, m.DB)
		case m.Partitions < 1:
			err = errors.New("its manifest has no partitions")
		default:
			m.Created = time.Now()
			return m, nil
		}
		failed = errors.Join(failed, fmt.Errorf("node %s: %w", addr, err))
	}
	return store.Manifest{}, failed
}
