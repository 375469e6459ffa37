package page

import (
	"bytes"
	"html/template"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits of a text that is rendered as Markdown. The library goldmark recurses for each level of nesting, takes
// quadratic time for some texts, and cannot be interrupted.
const (
	mostMarkdown = 256 << 10 // maximum size of the text in bytes
	mostNested   = 100       // maximum number of nested quotes and lists that a line opens
)

// renderable reports whether a text is small enough and not too deeply nested to be rendered as Markdown.
func renderable(shown string) bool {
	if len(shown) > mostMarkdown {
		return false
	}
	for line := range strings.Lines(shown) {
		if nested(line) > mostNested {
			return false
		}
	}
	return true
}

// nested returns the number of block quotes and list items that begin at the start of a line.
func nested(line string) (n int) {
	for {
		line = strings.TrimLeft(line, " \t")
		if rest, ok := strings.CutPrefix(line, ">"); ok {
			line = rest
			n++
			continue
		}
		rest := strings.TrimLeft(line, "0123456789")
		markers := "-+*"
		if len(rest) < len(line) {
			markers = ".)"
		}
		if len(rest) < 2 || !strings.Contains(markers, rest[:1]) || !strings.Contains(" \t", rest[1:2]) {
			return n
		}
		line = rest[1:]
		n++
	}
}

// markdown renders the Markdown of a note as HTML. It marks the blocks that begin within the range of lines in place.
// folder is the folder of the note. HTML in the note is shown as text. The renderer inert renders the links and
// images.
func markdown(shown, folder string, place lines) (template.HTML, error) {
	md := goldmark.New(
		goldmark.WithExtensions(extension.Strikethrough,
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&inert{folder: folder}, 100))),
	)
	var b bytes.Buffer
	source := []byte(visible(shown))
	tree := md.Parser().Parse(text.NewReader(source))
	if place.from > 0 || place.to > 0 {
		markPlace(tree, source, place)
	}
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			h.Level = min(6, h.Level+1) // below the heading of the view
		}
		return ast.WalkContinue, nil
	})
	if err := md.Renderer().Render(&b, source, tree); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // all text is escaped by goldmark and by inert
}

// markPlace sets the class "here" on the blocks that begin within the range of lines in place. It sets the id "place"
// on the first of these blocks. If no block begins within the range, it sets the id on the last block before the
// range.
func markPlace(tree ast.Node, source []byte, place lines) {
	var first, before ast.Node
	line, at := 1, 0
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		start := startOf(n)
		if start < at {
			continue
		}
		line, at = line+bytes.Count(source[at:start], []byte("\n")), start
		switch {
		case line < place.from:
			before = n
		case line <= place.to:
			n.SetAttributeString("class", []byte("here"))
			if first == nil {
				first = n
			}
		}
	}
	if first == nil {
		first = before
	}
	if first != nil {
		first.SetAttributeString("id", []byte("place"))
		first.SetAttributeString("tabindex", []byte("-1"))
	}
}

// startOf returns the position in the source at which a block begins, or -1 if the position is unknown.
func startOf(n ast.Node) int {
	for ; n != nil && n.Type() == ast.TypeBlock; n = n.FirstChild() {
		if l := n.Lines(); l != nil && l.Len() > 0 {
			return l.At(0).Start
		}
	}
	return -1
}

// inert renders links so that a browser does not follow them without the script. The script opens a link to another
// note, and asks the person before it opens any other link. An image is rendered as a link, so that the browser does
// not fetch it.
type inert struct{ folder string }

// RegisterFuncs implements renderer.NodeRenderer.
func (i *inert) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		l, ok := n.(*ast.Link)
		if !ok {
			return ast.WalkContinue, nil
		}
		if entering {
			i.open(w, string(l.Destination))
		} else {
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		l, ok := n.(*ast.Image)
		if !ok {
			return ast.WalkContinue, nil
		}
		if entering {
			i.open(w, string(l.Destination))
			_, _ = w.WriteString("image: ")
		} else {
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindAutoLink, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus,
		error) {
		if l, ok := n.(*ast.AutoLink); ok && entering {
			i.open(w, string(l.URL(source)))
			_, _ = w.Write(util.EscapeHTML(l.Label(source)))
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus,
		error) {
		if h, ok := n.(*ast.RawHTML); ok && entering { // as text, so that it is seen
			for j := range h.Segments.Len() {
				s := h.Segments.At(j)
				_, _ = w.Write(util.EscapeHTML(s.Value(source)))
			}
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus,
		error) {
		if h, ok := n.(*ast.HTMLBlock); ok && entering {
			_, _ = w.WriteString("<pre>")
			for j := range h.Lines().Len() {
				s := h.Lines().At(j)
				_, _ = w.Write(util.EscapeHTML(s.Value(source)))
			}
			if h.HasClosure() {
				_, _ = w.Write(util.EscapeHTML(h.ClosureLine.Value(source)))
			}
			_, _ = w.WriteString("</pre>\n")
		}
		return ast.WalkContinue, nil
	})
}

// open writes the HTML start tag of a link to href. The link cannot be followed if href is invalid, has another scheme
// than http, https and mailto, names a host without a scheme, or leads to a heading of the same note: headings have no
// ids.
func (i *inert) open(w util.BufWriter, href string) {
	u, err := url.Parse(href)
	switch {
	case err != nil, u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto",
		u.Scheme == "" && u.Host != "":
		_, _ = w.WriteString(`<a class="dead">`)
	case u.Scheme == "" && u.Path == "":
		_, _ = w.WriteString(`<a class="dead">`) // to a heading: headings have no ids
	case u.Scheme == "":
		target := strings.TrimPrefix(path.Join("/", i.folder, u.Path), "/")
		if strings.HasPrefix(u.Path, "/") {
			target = strings.TrimPrefix(path.Clean(u.Path), "/")
		}
		i.attribute(w, "href", link("note", "path", target))
	default:
		i.attribute(w, `class="out" role="link" tabindex="0" data-out`, href)
	}
}

func (i *inert) attribute(w util.BufWriter, name, value string) {
	_, _ = w.WriteString("<a " + name + `="`)
	_, _ = w.Write(util.EscapeHTML([]byte(value)))
	_, _ = w.WriteString(`">`)
}
