package statuspage

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"sequins/observe/status"
)

// fill sets a value, and all in it, to what a hostile node could send.
func fill(r *rand.Rand, v reflect.Value) {
	texts := []string{"", "a", "node1:9599", "peer1:9599", "ACTIVE", "ERROR", "1", "load", "<script>alert(1)</script>\"'", "\x00\xff\x1b", "javascript:alert(1)", strings.Repeat("x", 300)}
	ints := []int64{0, 1, -1, 2, 100, 1 << 40, math.MaxInt64, math.MinInt64}
	floats := []float64{0, 1, -1, 0.5, 1e-300, 1.7e308, -1.7e308}
	times := []time.Time{{}, time.Unix(1, 0), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(ints[r.IntN(len(ints))])
	case reflect.Float64:
		v.SetFloat(floats[r.IntN(len(floats))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(times[r.IntN(len(times))]))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(r, v.Field(i))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, element)
			v.SetMapIndex(key, element)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	}
}

// Whatever two other nodes send, the status of the cluster has only names that can be, is JSON, and its pages hold no script of theirs.
func TestHostileNodes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var answers []status.Answer
		for _, addr := range []string{"peer1:9599", "peer2:9599"} {
			var sent, received status.Status
			fill(r, reflect.ValueOf(&sent).Elem())
			b, err := json.Marshal(sent)
			if err != nil || json.Unmarshal(b, &received) != nil {
				continue // nobody can send it
			}
			answers = append(answers, status.Answer{Peer: status.Peer{Addr: addr}, Status: received})
		}
		here := status.OnNode{State: status.Active, Current: true, Partitions: []int{0, 1}}
		own := status.Status{Node: "node1:9599", DBs: map[string]status.DB{"a": {Versions: map[string]status.Version{
			"1": {NumPartitions: 4, TargetReplication: 2, Nodes: map[string]status.OnNode{"node1:9599": here}}}}}}
		own.Merge(answers)
		own.Complete(true, "")
		if _, err := json.Marshal(own); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for db := range own.DBs {
			if strings.ContainsAny(db, "<\x00") || db == "" {
				t.Errorf("seed %d: the database %q", seed, db)
			}
		}
		for _, db := range []string{"", "a"} {
			page, err := Render(own, db, time.Now())
			if text := string(page); err != nil || strings.Contains(text, "<script>alert") || strings.Contains(text, `href="javascript`) {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
		}
	}
}
