package blocks

import "math/rand/v2"

// SampleKeys calls f with about n keys of up to pages pages, ascending: of one page, chosen by rng, of each of as many
// ranges of equal size, at least one key of each. A key is valid until f returns. The error is ErrCorrupt for damage.
func (r *Reader) SampleKeys(pages, n int, rng *rand.Rand, f func(key []byte)) error {
	it := &Iterator{r: r, want: minSpan, most: minSpan}
	all := r.props.Pages
	pages = min(pages, all)
	for i := range pages {
		first, end := i*all/pages, (i+1)*all/pages
		it.next = first + rng.IntN(end-first)
		if !it.load() {
			return it.err
		}
		if it.value.large != nil {
			f(it.key)
		} else if err := it.sampleKeys(max(1, n/pages), f); err != nil {
			return err
		}
	}
	return nil
}

// sampleKeys calls f with up to n keys that are spread over the current page.
func (it *Iterator) sampleKeys(n int, f func(key []byte)) error {
	all := it.page.len()
	n = min(n, all)
	for i := range n {
		key, _, err := it.page.record(i * all / n)
		if err != nil {
			it.fail(err)
			return it.err
		}
		f(key)
	}
	return nil
}
