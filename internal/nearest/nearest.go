// Package nearest finds the name that somebody meant who has mistyped it.
package nearest

import "strings"

// longest is the maximum length of a name that is compared, in bytes: the distance takes quadratic time.
const longest = 200

// Of returns the candidate that a mistyped name most likely stands for, or "" if none is close: one that the name is the
// beginning of, or else the one with the smallest distance, of at most two or a third of the name.
func Of(name string, candidates []string) string {
	if len(name) > longest {
		return ""
	}
	best, least := "", min(max(2, len(name)/3), len(name)-1)+1
	for _, c := range candidates {
		if len(c) > longest {
			continue
		}
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if len(name) > 1 && strings.HasPrefix(c, name) {
			d = 0
		}
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean ends a message about a name that is not known with the one that Of has found, if any.
func DidYouMean(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}

// distance returns the Levenshtein distance of two names, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
