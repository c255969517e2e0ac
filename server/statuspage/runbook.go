package statuspage

import (
	"bytes"
	_ "embed" // runbook.html
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"sequins/docs"
)

//go:embed runbook.html
var runbookSource string

var runbookTemplate = template.Must(template.New("runbook").Parse(runbookSource))

// heading is a heading of the runbook, with its anchor.
type heading struct{ Text, Anchor string }

// Runbook returns the page of the runbook, docs/RUNBOOK.md. The page has no links to other pages of the documentation, which nodes do
// not have: it names them.
var Runbook = sync.OnceValues(func() ([]byte, error) {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(namedParts{}, 1))))
	doc := markdown.Parser().Parse(text.NewReader(docs.Runbook))
	var body, page bytes.Buffer
	if err := markdown.Renderer().Render(&body, docs.Runbook, doc); err != nil {
		return nil, fmt.Errorf("RUNBOOK.md: %w", err)
	}
	err := runbookTemplate.Execute(&page, map[string]any{
		"Style": template.CSS(pageStyle), "Body": template.HTML(body.Bytes()), "Headings": headings(doc), //nolint:gosec // they are our own
	})
	return page.Bytes(), err
})

// headings returns the headings below the title.
func headings(doc ast.Node) (all []heading) {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		id, known := n.AttributeString("id")
		if !ok || h.Level < 2 || !known {
			continue
		}
		anchor, _ := id.([]byte)
		all = append(all, heading{string(n.Lines().Value(docs.Runbook)), string(anchor)})
	}
	return all
}

// namedParts renders links to other sections as links, links to other pages as the names of the pages, and gives each table the name of
// its section, for screen readers.
type namedParts struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (namedParts) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, renderLink)
	r.Register(tables.KindTable, renderTable)
}

func renderLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	link, ok := n.(*ast.Link)
	if !ok {
		return ast.WalkStop, fmt.Errorf("a link is a %T", n)
	}
	to := string(link.Destination)
	var err error
	switch inside := strings.HasPrefix(to, "#"); {
	case inside && entering:
		_, err = fmt.Fprintf(w, `<a href="%s">`, util.EscapeHTML(link.Destination))
	case inside:
		_, err = w.WriteString("</a>")
	case !entering:
		_, err = fmt.Fprintf(w, ` <span class="dim">(docs/%s)</span>`, util.EscapeHTML(link.Destination))
	}
	return ast.WalkContinue, err
}

func renderTable(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</table>\n")
		return ast.WalkContinue, err
	}
	section := n
	for section.Kind() != ast.KindHeading && section.PreviousSibling() != nil {
		section = section.PreviousSibling()
	}
	_, err := fmt.Fprintf(w, "<table aria-label=\"%s\">\n", util.EscapeHTML(section.Lines().Value(source)))
	return ast.WalkContinue, err
}
