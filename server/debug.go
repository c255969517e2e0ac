package server

import (
	"encoding/json"
	"expvar"
	"net/http"
	"net/http/pprof"
	"strings"

	"sequins/observe/metrics"
)

// DebugOptions are the settings of the debug listener.
type DebugOptions struct {
	Metrics *metrics.Metrics
	Pprof   bool // /debug/pprof/
	// Reload reads the configuration again and looks for new versions, for POST /-/reload. It returns the keys that have changed and
	// need a restart. Refresh only looks for new versions, for POST /-/refresh.
	Reload  func() (restart []string, err error)
	Refresh func()
	// Probed is the server that GET /livez and /readyz are about, for probes without a certificate or token.
	Probed *Server
}

// DebugHandler returns the handler of the debug listener: /metrics for Prometheus, Go's expvars, and the enabled pages. It
// must not be public: profiles show memory contents.
func DebugHandler(o DebugOptions) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.Metrics.Handler())
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, _ *http.Request) { vars(w, o.Metrics) })
	if o.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("POST /-/reload", func(w http.ResponseWriter, _ *http.Request) { reload(w, o.Reload) })
	mux.HandleFunc("POST /-/refresh", func(w http.ResponseWriter, _ *http.Request) {
		o.Refresh()
		text(w, http.StatusOK, "looking for new versions")
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		code, line := o.Probed.readiness([]byte(r.URL.RawQuery), true)
		text(w, code, line)
	})
	// A page in the browser of somebody who may reach this listener must not reload.
	guarded := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		guarded.ServeHTTP(w, req)
	})
}

func reload(w http.ResponseWriter, reload func() ([]string, error)) {
	restart, err := reload()
	switch {
	case err != nil:
		text(w, http.StatusInternalServerError, "not everything was reloaded, and what was not stays as it was:\n"+err.Error())
	case len(restart) > 0:
		text(w, http.StatusOK, "reloaded, but for what needs a restart: "+strings.Join(restart, ", "))
	default:
		text(w, http.StatusOK, "reloaded")
	}
}

// vars writes the published expvars and our own. Ours are not published, because expvar allows that only once
// per process.
func vars(w http.ResponseWriter, m *metrics.Metrics) {
	all := make(map[string]json.RawMessage)
	expvar.Do(func(kv expvar.KeyValue) { all[kv.Key] = json.RawMessage(kv.Value.String()) })
	own, err := json.Marshal(m.Server.Vars())
	if err == nil {
		all["sequins"] = own
		own, err = json.Marshal(all)
	}
	if err != nil {
		text(w, http.StatusInternalServerError, "the variables cannot be rendered: "+oneLine(err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Write(own) //nolint:errcheck // the client has gone
}
