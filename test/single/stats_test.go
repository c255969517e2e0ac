//go:build integration

package single

import (
	"encoding/json"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// oldVars are the variables that monitoring of Stripe's sequins reads, with its types.
type oldVars struct {
	Sequins *struct {
		QPS *struct {
			Total    *int64
			ByStatus map[string]int64
		} `json:"Qps"`
		Latency  map[string]float64
		DiskUsed *int64
	} `json:"sequins"`
	Memstats map[string]any `json:"memstats"`
}

func varsOf(t *testing.T, n *process.Node) (v oldVars) {
	t.Helper()
	r, err := (&process.Node{Addr: n.Debug}).TryGet("/debug/vars")
	if err != nil || r.Code != 200 {
		t.Fatalf("/debug/vars: %v %+v", err, r)
	}
	if err := json.Unmarshal(r.Body, &v); err != nil {
		t.Fatalf("/debug/vars: %v: %s", err, r.Body)
	}
	if s := v.Sequins; s == nil || s.QPS == nil || s.QPS.Total == nil || s.DiskUsed == nil || len(v.Memstats) == 0 {
		t.Fatalf("/debug/vars lacks something: %s", r.Body)
	}
	return v
}

// The variables that Stripe's sequins published at /debug/vars have the same names, during requests and afterwards.
func TestOldVars(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "words", "1", 3, 1000, numbered("1"))
	n := process.Serve(t, c, "words", "1")
	client := n.Client()
	defer client.Close()
	var v oldVars
	n.WaitFor(t, "both kinds of requests are in one period", func() bool {
		for _, target := range []string{"/words/key-000001", "/words/absent", "/words/key-000001?proxy=none"} {
			if _, err := client.Get(target); err != nil {
				t.Fatal(err)
			}
		}
		v = varsOf(t, n)
		return v.Sequins.QPS.ByStatus["200"] > 0 && v.Sequins.QPS.ByStatus["404"] > 0
	})
	q, l := v.Sequins.QPS, v.Sequins.Latency
	if q.ByStatus["501"] != 0 || *q.Total != q.ByStatus["200"]+q.ByStatus["404"] || len(q.ByStatus) != 8 {
		t.Errorf("requests: %d, %v", *q.Total, q.ByStatus)
	}
	for _, name := range []string{"Max", "Mean", "P9999", "P99", "P95", "P90", "P75", "P50", "P25"} {
		if l[name] <= 0 || l[name] > 6e4 || l[name] > l["Max"] && name != "Mean" {
			t.Errorf("%s is %v ms: %v", name, l[name], l)
		}
	}
	var status struct {
		Disk struct {
			Bytes  int64 `json:"bytes"`
			Free   int64 `json:"bytes_free"`
			Blocks int64 `json:"bytes_blocks"`
		} `json:"disk"`
	}
	expect.NoError(t, json.Unmarshal(n.Get(t, "/").Body, &status))
	if d := status.Disk; d.Blocks <= 0 || d.Blocks != *v.Sequins.DiskUsed || d.Free <= 0 || d.Free > d.Bytes {
		t.Errorf("the disk of the status: %+v; DiskUsed is %d", d, *v.Sequins.DiskUsed)
	}
	n.WaitFor(t, "an idle period", func() bool {
		v = varsOf(t, n)
		return *v.Sequins.QPS.Total == 0 && v.Sequins.Latency["Max"] == 0
	})
}
