package fill

import (
	"context"
	"log/slog"
	"time"

	"sequins/internal/names"
	"sequins/store"
	"sequins/transfer"
)

// adoptTimeout limits how long other nodes are asked what they serve.
const adoptTimeout = 10 * time.Second

// origin is what the store has as the source of a db that was adopted: it is not known which source the other nodes have.
const origin = "another node while the source could not be listed"

// An Adoption is what Adopt needs.
type Adoption struct {
	Transfer  *transfer.Transfer
	Peers     []string // addresses of the other nodes
	Store     *store.Store
	Databases []string             // that other nodes hold something of
	Known     func(db string) bool // whether this node has the db already
	Logger    *slog.Logger
}

// Adopt stores the plans of the versions that other nodes serve of databases that are not known, while the source cannot be listed, and returns
// the names of these databases. They can be opened as after a restart that has lost all blocks.
func Adopt(ctx context.Context, a Adoption) (adopted []string) {
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	for _, db := range a.Databases {
		if !names.Valid(db) || a.Known(db) {
			continue
		}
		m := a.Transfer.Current(ctx, a.Peers, db)
		if m == nil {
			continue
		}
		m.Created = time.Now()
		log := a.Logger.With("db", db, "version", m.Version)
		err := a.Store.SetOrigin(db, origin, nil) // it is compared with the source as soon as that can be listed
		if err == nil {
			_, err = a.Store.Create(db, m.Version, *m)
		}
		if err == nil {
			err = a.Store.SetServed(db, m.Version)
		}
		if err != nil {
			log.Error("what other nodes serve of a database cannot be taken over", "error", err)
			continue
		}
		log.Warn("the source cannot be listed; the version that other nodes serve is copied from them")
		adopted = append(adopted, db)
	}
	return adopted
}
