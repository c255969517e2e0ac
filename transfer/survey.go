package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// Survey is what a node says of the versions of a db.
type Survey struct {
	// Version is the name of the version that it serves, or served before its restart; "" if there is none.
	Version string `json:"version,omitempty"`
	// Held are the versions that it holds, or would hold again, by its present rules.
	Held []Held `json:"held,omitempty"`
}

// Held is a version that a gate holds.
type Held struct {
	Version string `json:"version"` // its name in the source
	Plan    string `json:"plan"`
	Reason  string `json:"reason"`
}

const (
	surveyType = "application/vnd.sequins.survey+json"
	// maxSurvey limits the answer of a node, in bytes.
	maxSurvey = 256 << 10
	// surveyedAtOnce is the number of nodes that are asked in parallel.
	surveyedAtOnce = 16
)

// AsksSurvey reports whether the query of a request of another node asks for a Survey.
func AsksSurvey(query string) bool {
	values, err := url.ParseQuery(query)
	return err == nil && values.Has("survey")
}

// Serve answers with s. The result is that of Transfer.Serve.
func (s Survey) Serve(w http.ResponseWriter) (code int, text string) {
	data, err := json.Marshal(s)
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	w.Header().Set("Content-Type", surveyType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the server notices that the client has gone
	return http.StatusOK, ""
}

// Survey asks nodes for what they say of a db, and returns the answers by address. Nodes that do not answer until ctx ends, and those of
// releases without surveys, are left out.
func (t *Transfer) Survey(ctx context.Context, addrs []string, db string) map[string]Survey {
	var (
		mu      sync.Mutex
		asking  sync.WaitGroup
		answers = make(map[string]Survey)
		slots   = make(chan struct{}, surveyedAtOnce)
	)
	for _, addr := range addrs {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			s, err := t.survey(ctx, addr, db)
			if err != nil {
				t.o.Logger.Info("another node does not say which versions it serves and holds", "db", db, "peer", addr, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[addr] = s
		})
	}
	asking.Wait()
	return answers
}

func (t *Transfer) survey(ctx context.Context, addr, db string) (s Survey, err error) {
	resp, err := t.get(ctx, addr, db, "true", "", "blocks&survey")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != surveyType {
		return s, fmt.Errorf("%w: it answers with %s", ErrUnable, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxSurvey)).Decode(&s); err != nil {
		return s, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return s, nil
}
