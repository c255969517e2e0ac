package fsst

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
)

func benchRecords(n int) [][]byte {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%016x", mix(uint64(i)))
	}
	slices.Sort(keys)
	var recs [][]byte
	for i, k := range keys {
		recs = append(recs, append(append([]byte{16}, k...), benchValue(i)...))
	}
	return recs
}

func TestMin(t *testing.T) {
	recs := benchRecords(3300)
	var sample [][]byte
	for i := range 140 {
		sample = append(sample, recs[i*23])
	}
	e := Train(sample)
	var buf, out []byte
	var pageEnds []int
	for i := range 33 {
		pageEnds = append(pageEnds, 117*(i+1))
	}
	ends := make([]int, 33)
	var coded [][]byte
	for _, r := range recs {
		coded = append(coded, e.AppendAll(nil, r, []int{len(r)}))
	}
	mins := map[string]time.Duration{"enc": time.Hour, "snap": time.Hour, "dec": time.Hour, "unsnap": time.Hour}
	for range 40 {
		for p := 0; p < 100; p++ {
			page := bytes.Join(recs[33*p:33*p+33], nil)
			copy(ends, pageEnds)
			begun := time.Now()
			buf = e.AppendAll(buf[:0], page, ends)
			mins["enc"] = min(mins["enc"], time.Since(begun))
			begun = time.Now()
			out = s2.EncodeSnappy(out[:cap(out)], page)
			mins["snap"] = min(mins["snap"], time.Since(begun))
			begun = time.Now()
			for i := range 33 {
				buf, _ = e.Table.Append(buf[:0], coded[33*p+i], 1<<16)
			}
			mins["dec"] = min(mins["dec"], time.Since(begun))
			begun = time.Now()
			page, _ = s2.Decode(page, out)
			mins["unsnap"] = min(mins["unsnap"], time.Since(begun))
		}
	}
	for k, v := range mins {
		fmt.Println(k, v/33)
	}
}
