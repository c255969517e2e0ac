package manual

import "regexp"

// programs are the programs in the commands of the manual.
const programs = `sequins|systemctl|journalctl|go|make|curl|cat|apt|apt-get|dmesg|smartctl|iostat|docker|kubectl|helm|openssl`

var (
	fence    = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)^    ((?:` + programs + `) [^\n]*)$`)
	inline   = regexp.MustCompile("`((?:" + programs + ") [^`]+)`")
	comment  = regexp.MustCompile(`\s+# .*`)
	spaces   = regexp.MustCompile(`\s+`)
)

// Block is a fenced block of a page.
type Block struct{ Language, Text string }

// Blocks returns the fenced blocks of a page.
func Blocks(text string) (all []Block) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		all = append(all, Block{m[1], m[2]})
	}
	return all
}

// Commands returns the commands of a page outside of its fenced blocks.
func Commands(text string) (found []string) {
	text = fence.ReplaceAllString(text, "")
	for _, m := range append(indented.FindAllStringSubmatch(text, -1), inline.FindAllStringSubmatch(indented.ReplaceAllString(text, ""), -1)...) {
		found = append(found, spaces.ReplaceAllString(comment.ReplaceAllString(m[1], ""), " "))
	}
	return found
}
