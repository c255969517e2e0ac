package load

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/render"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// contents returns all records of a loaded version.
func (w *world) contents(plan *Plan) map[string]string {
	w.t.Helper()
	got := map[string]string{}
	for _, p := range all(plan) {
		maps.Copy(got, w.block(p))
	}
	return got
}

// The values of a version have the columns of the directories at their end, integers only if all of a column are.
func TestPartitionColumns(t *testing.T) {
	for _, fixture := range []string{"parquet-snappy", "avro-deflate"} {
		content := fixtureFile(t, fixture)
		plain := newWorld(t)
		plain.put("part-0", content)
		want := plain.contents(plain.load(Options{Fields: Fields{Key: "id"}}))
		if len(want) == 0 {
			t.Fatal("no records")
		}
		for dirs, more := range map[string]string{
			"date=2026-01-31/hour=07": `,"date":"2026-01-31","hour":7}`,
			"hour=07":                 `,"hour":7}`,
			"hour=0x hour=1":          `,"hour":"1"}`,
			"hour=__HIVE_DEFAULT_PARTITION__ hour=-1": `,"hour":null}`,
			"hour=08 hour=9":           `,"hour":9}`,
			"hour=9223372036854775807": `,"hour":9223372036854775807}`,
			"hour=9223372036854775808": `,"hour":"9223372036854775808"}`,
			"a%22b=c%22%0A%E4/e=":      `,"a\"b":"c\"\n` + "\ufffd" + `","e":""}`,
			"a=1/b=2/c=3/d=4/e=5/f=6/g=7/h=8 a=0/b=0/c=0/d=0/e=0/f=0/g=0/h=0": `,"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}`, // the last one wins
		} {
			w := newWorld(t)
			for dir := range strings.SplitSeq(dirs, " ") {
				w.put(filepath.Join(dir, "part-0"), content)
			}
			plan := w.load(Options{Fields: Fields{Key: "id"}, PartitionColumns: true})
			got := w.contents(plan)
			extended := map[string]string{}
			for k, v := range want {
				extended[k] = strings.TrimSuffix(v, "}") + more
				if !json.Valid([]byte(got[k])) {
					t.Errorf("%s: no JSON: %s", dirs, got[k])
				}
			}
			if diff := cmp.Diff(extended, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%.1000s", fixture, dirs, diff)
			}
		}
	}
}

// Versions that the option does not fit are refused with what to do.
func TestWrongPartitionColumns(t *testing.T) {
	pq, av := fixtureFile(t, "parquet-snappy"), fixtureFile(t, "avro-deflate")
	seq := sequenceFile(t, []rec{{key: "a"}}, sequencefiles.WriterOptions{})
	for name, tt := range map[string]struct {
		files  map[string][]byte
		fields Fields
		says   string
	}{
		"a field of Parquet":  {map[string][]byte{"n=1/part-0": pq, "n=2/part-0": pq}, Fields{Key: "id"}, `"n" is a field of the records`},
		"a field of Avro":     {map[string][]byte{"a=1/big=1/part-0": av, "a=1/big=2/part-0": av}, Fields{Key: "id"}, `"big" is a field of the records`},
		"the key":             {map[string][]byte{"id=1/part-0": pq}, Fields{Key: "id"}, `"id" is a field of the records`},
		"twice":               {map[string][]byte{"a=1/a=2/part-0": pq}, Fields{Key: "id"}, `"a" is twice`},
		"different columns":   {map[string][]byte{"a=1/part-0": pq, "b=1/part-0": pq}, Fields{Key: "id"}, "a=1/part-0 and b=1/part-0 are in directories of different columns"},
		"different depths":    {map[string][]byte{"a=1/part-0": pq, "part-0": pq}, Fields{Key: "id"}, "different columns"},
		"no columns":          {map[string][]byte{"part-0": pq}, Fields{Key: "id"}, "part-0 is in no directory named column=value"},
		"one field as value":  {map[string][]byte{"a=1/part-0": pq}, Fields{Key: "id", Value: "n"}, `value is "n"`},
		"a column as the key": {map[string][]byte{"a=1/part-0": pq, "a=2/part-0": pq}, Fields{Key: "a"}, `there is no field "a"`},
		"SequenceFiles":       {map[string][]byte{"a=1/part-0": seq}, Fields{Key: "id"}, "of format sequencefile: turn it off"},
		"Sparkey logs":        {map[string][]byte{"a=1/part-0.spl": sparkeyLog(t, nil)}, Fields{Key: "id"}, "of format sparkey: turn it off"},
	} {
		w := newWorld(t)
		for file, content := range tt.files {
			w.put(file, content)
		}
		l := newLoader(w.src, w.store, nil, Options{Fields: tt.fields, PartitionColumns: true})
		plan, err := l.Plan(t.Context(), "db", "1")
		if err == nil {
			err = l.Load(t.Context(), plan, all(plan))
		}
		if !errors.Is(err, render.ErrField) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Blocks with the columns and blocks without them are of different inputs, and a version that is planned keeps its
// setting.
func TestPlansWithPartitionColumns(t *testing.T) {
	w := newWorld(t)
	w.put("a=1/part-0", fixtureFile(t, "parquet-snappy"))
	with, without := Options{Fields: Fields{Key: "id"}, PartitionColumns: true}, Options{Fields: Fields{Key: "id"}}
	plan := check(newLoader(w.src, w.store, nil, with).Plan(t.Context(), "db", "1"))(t)
	other := check(newLoader(w.src, w.store, nil, without).Plan(t.Context(), "db", "1"))(t)
	if plan.Input == other.Input {
		t.Error("they are of the same input")
	}
	m := plan.Manifest()
	data, err := json.Marshal(m)
	expect.NoError(t, err)
	expect.NoError(t, json.Unmarshal(data, &m))
	again := check(newLoader(w.src, w.store, nil, without.PlannedBy(m)).Plan(t.Context(), "db", "1"))(t)
	if again.Manifest().Content() != plan.Manifest().Content() {
		t.Error("a plan after a restart differs")
	}
	again = check(newLoader(w.src, w.store, nil, with.PlannedBy(other.Manifest())).Plan(t.Context(), "db", "1"))(t)
	if again.Manifest().Content() != other.Manifest().Content() {
		t.Error("a plan without columns gets them after a restart")
	}
}
