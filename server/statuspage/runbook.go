package statuspage

import (
	"bytes"
	_ "embed" // runbook.html
	"fmt"
	"html/template"
	"regexp"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"sequins/docs"
)

//go:embed runbook.html
var runbookSource string

var (
	runbookTemplate = template.Must(template.New("runbook").Parse(runbookSource))
	// otherPage is a link to another page of the documentation, which nodes do not have.
	otherPage = regexp.MustCompile(`\[([^\]]+)\]\(([A-Z]+\.md[^)]*)\)`)
	heading   = regexp.MustCompile(`<h[23] id="([^"]+)">(.*?)</h[23]>`)
)

// Runbook returns the page of the runbook, docs/RUNBOOK.md. It names other pages instead of linking to them.
var Runbook = sync.OnceValues(func() ([]byte, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var body, page bytes.Buffer
	if err := markdown.Convert(otherPage.ReplaceAll(docs.Runbook, []byte("$1 (docs/$2)")), &body); err != nil {
		return nil, fmt.Errorf("RUNBOOK.md: %w", err)
	}
	named := bytes.ReplaceAll(body.Bytes(), []byte("<table>"), []byte(`<table aria-label="What this section lists">`)) // for screen readers
	var headings []template.HTML
	for _, h := range heading.FindAllSubmatch(named, -1) {
		headings = append(headings, template.HTML(fmt.Sprintf(`<a href="#%s">%s</a>`, h[1], h[2]))) //nolint:gosec // they are our own
	}
	err := runbookTemplate.Execute(&page, map[string]any{
		"Style": template.CSS(pageStyle), "Body": template.HTML(named), "Headings": headings, //nolint:gosec // they are our own
	})
	return page.Bytes(), err
})
