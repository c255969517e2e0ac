package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"sequins/internal/content"
	"sequins/internal/parallel"
)

const (
	maxServing = 8 << 20 // bytes of an answer
	maxServed  = 1 << 16 // dbs in it
	// askedAtOnce is the number of nodes that are asked in parallel.
	askedAtOnce = 64
)

// AnswerServing answers another node, which the caller has authorized, with what this node serves: see Options.Serving.
func (t *Transfer) AnswerServing(w http.ResponseWriter) {
	_, _ = answer(w, servingType, "", t.o.Serving()) // a map of texts can always be JSON
}

// Serving asks nodes what they serve, and returns the contents by address and db. Nodes that do not answer within askTimeout, or with something else,
// are left out. hangs reports whether one did not answer.
func (t *Transfer) Serving(ctx context.Context, addrs []string) (all map[string]map[string]content.Content, hangs bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	all = make(map[string]map[string]content.Content)
	_ = parallel.Run(ctx, min(askedAtOnce, len(addrs)), len(addrs), func(ctx context.Context, i int) error {
		serving, err := t.serving(ctx, addrs[i])
		if err != nil {
			t.o.Logger.Info("another node does not report what it serves", "peer", addrs[i], "error", err)
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		all[addrs[i]] = serving
		return nil
	})
	return all, ctx.Err() != nil
}

func (t *Transfer) serving(ctx context.Context, addr string) (all map[string]content.Content, err error) {
	err = t.ask(ctx, addr, "/?proxy=serving", "", servingType, maxServing, func(data []byte) error {
		if bytes.Count(data, []byte(",")) > 4*maxServed { // an element may take 30 times its bytes in memory
			return errors.New("it has too many dbs")
		}
		return json.Unmarshal(data, &all)
	})
	for db, c := range all {
		if err == nil && !c.Valid() {
			err = fmt.Errorf("db %.100q: %.300q is not a content", db, c)
		}
	}
	return all, err
}

// Latest returns what most nodes serve of a db, from a result of Serving: the content with the greatest name that more than half of the nodes with
// the db have reached. So one node with another source does not lead the others astray. Of several contents of that name it is the one that most
// nodes serve. It is zero if none serves the db.
func Latest(serving map[string]map[string]content.Content, db string) (latest content.Content) {
	nodes := make(map[content.Content]int)
	var names []string
	for _, all := range serving {
		if c, found := all[db]; found {
			nodes[c]++
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return latest
	}
	slices.Sort(names)
	reached := names[(len(names)-1)/2]
	for c, n := range nodes {
		if most := nodes[latest]; c.Name == reached && (n > most || n == most && c.Code() > latest.Code()) {
			latest = c
		}
	}
	return latest
}
