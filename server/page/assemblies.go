package page

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/human"
)

// shownAssemblies is the template data of the list of assemblies.
type shownAssemblies struct {
	Rows  []assemblyRow
	Query string
	// Filters are the filters of the list. A filter on a member that assemblies do not have matches none.
	Filters []chosen
	More    bool
	Unread  []string
}

type assemblyRow struct {
	varve.Assembly
	Level float64
}

func (p *Page) allAssemblies(r *request) (*view, error) { return p.assemblies(r, nil, nil) }

func (p *Page) assemblies(r *request, chosen []chosen, filters []varve.Filter) (*view, error) {
	d := &shownAssemblies{Query: strings.TrimSpace(r.get("q")), Filters: chosen}
	words := strings.ToLower(d.Query)
	for a, err := range r.st.Assemblies().All(r.ctx, filters...) {
		if err != nil {
			if fatal(err) || len(d.Unread) > MostRows {
				return nil, err
			}
			d.Unread = append(d.Unread, err.Error())
			continue
		}
		if !strings.Contains(strings.ToLower(a.Name+" "+a.Description+" "+a.ID+" "+strings.Join(a.Tags, " ")),
			words) {
			continue
		}
		if d.More = len(d.Rows) == 4*MostRows; d.More {
			break
		}
		d.Rows = append(d.Rows, assemblyRow{a, r.st.Assemblies().Level(&a)})
	}
	return &view{template: "assemblies", title: "Assemblies", data: d}, nil
}

// shownAssembly is the template data of one assembly.
type shownAssembly struct {
	varve.Assembly
	Level   float64
	Writer  varve.Writer
	Members []row
	Missing int // number of members that are not shown, because they are deleted, expired, damaged or too many
	Drawing *drawing
	Deleted *version // the assembly is deleted
	// Versions is the history of the assembly, the newest version first.
	Versions []version
	Older    bool // there were versions before those in Versions
	Unread   []string
}

// mostMembers is the maximum number of members of an assembly that the page reads.
const mostMembers = 1000

func (p *Page) assembly(r *request) (*view, error) {
	id := r.get("id")
	a, err := r.st.Assemblies().Get(r.ctx, id)
	if err != nil && fatal(err) {
		return nil, err
	}
	missing := errors.Is(err, varve.ErrNotFound)
	h := shownMemory{}
	h.versions(r, r.st.Assemblies().History(r.ctx, id))
	if missing && len(h.Versions) == 0 {
		return nil, err
	}
	d := &shownAssembly{Assembly: a, Versions: h.Versions, Older: h.Older, Unread: h.Unread}
	switch {
	case missing:
		d.ID, d.Deleted = id, &h.Versions[0]
		return &view{template: "assembly", title: shortened(visible(id), 60), data: d}, nil
	case err != nil: // damaged: the history is shown, with the reason
		d.ID, d.Unread = id, append(d.Unread, err.Error())
		return &view{template: "assembly", title: shortened(visible(id), 60), data: d}, nil
	}
	d.Level, d.Writer = r.st.Assemblies().Level(&a), r.st.Admin().WriterOf(a.By, a.Version)
	g := &drawing{}
	name := a.Name
	if name == "" {
		name = a.ID
	}
	g.node(shortened(visible(name), 28), link("assembly", "id", a.ID), "assembly")
	for _, id := range a.MemoryIDs[:min(len(a.MemoryIDs), mostMembers)] {
		if len(d.Members) == 2*MostRows {
			break
		}
		m, err := r.st.Get(r.ctx, id)
		if err != nil {
			if !errors.Is(err, varve.ErrNotFound) && len(d.Unread) < MostRows {
				d.Unread = append(d.Unread, err.Error())
			}
			continue
		}
		d.Members = append(d.Members, p.row(r.st, &m))
		if len(g.Nodes) <= mostDrawn {
			g.edge(0, g.node(shortened(visible(human.Head(m.Content, listText)), 28), link("memory", "id", id), ""),
				"")
		}
	}
	d.Missing = len(a.MemoryIDs) - len(d.Members)
	if len(g.Nodes) > 1 {
		g.place()
		d.Drawing = g
	}
	return &view{template: "assembly", title: shortened(visible(name), 60), data: d}, nil
}

// assemblyForget deletes an assembly, which can be restored later. The members of the assembly are not deleted.
func (p *Page) assemblyForget(r *request) (*view, error) {
	n, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form has no valid version number", "open the assembly again"}
	}
	if err := r.st.Assemblies().Delete(r.ctx, r.get("id"), varve.IfVersion(n)); err != nil {
		return nil, err
	}
	return &view{said: `Forgotten; "Bring back" undoes it`, goTo: link("assembly", "id", r.get("id"))}, nil
}

func (p *Page) assemblyUndelete(r *request) (*view, error) {
	if _, err := r.st.Assemblies().Undelete(r.ctx, r.get("id")); err != nil {
		return nil, err
	}
	return &view{said: "Brought back", goTo: link("assembly", "id", r.get("id"))}, nil
}

// assemblyRestore makes an earlier version of an assembly its newest version.
func (p *Page) assemblyRestore(r *request) (*view, error) {
	n, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form has no valid version number", "open the assembly again"}
	}
	a, err := r.st.Assemblies().Revert(r.ctx, r.get("id"), n)
	if err != nil {
		return nil, err
	}
	return &view{said: fmt.Sprintf("Restored version %d as version %d", n, a.Version),
		goTo: link("assembly", "id", a.ID)}, nil
}

// shownGraph is the template data of the knowledge graph. It shows the whole graph, or one entity with its relations.
type shownGraph struct {
	Name     string
	Entity   *graph.Entity
	Entities []graph.Entity // the first entities of the whole graph; nil if one entity is shown
	Edges    []graph.Relation
	More     bool
	Drawing  *drawing
	Unread   []string
}

// unread handles an error of reading one document. If the view can continue, unread records the error and returns nil.
// Otherwise it returns the error.
func (d *shownGraph) unread(r *request, err error) error {
	if fatal(err) || r.ctx.Err() != nil {
		return err
	}
	if len(d.Unread) < MostRows {
		d.Unread = append(d.Unread, err.Error())
	}
	return nil
}

// mostDrawn is the maximum number of nodes in a drawing. mostScanned is the maximum number of memories that are
// read to show the whole graph.
const (
	mostDrawn   = 40
	mostScanned = 2000
)

func (p *Page) graph(r *request) (*view, error) {
	d := &shownGraph{Name: r.get("name")}
	if d.Name != "" {
		m, err := r.st.Get(r.ctx, graph.EntityID(d.Name))
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			return nil, err
		}
		if e, ok := graph.EntityOf(&m); err == nil && ok {
			d.Entity = &e
		}
	}
	n := 0
	for m, err := range r.st.Memories(r.ctx, varve.InCategory(graph.RelationCategory)) {
		if err != nil {
			if err := d.unread(r, err); err != nil {
				return nil, err
			}
			continue
		}
		if n++; n > mostScanned {
			d.More = true
			break
		}
		if e, ok := graph.RelationOf(&m); ok && (d.Name == "" || e.From == d.Name || e.To == d.Name) {
			d.Edges = append(d.Edges, e)
		}
	}
	if d.Name == "" {
		for m, err := range r.st.Memories(r.ctx, varve.InCategory(graph.EntityCategory)) {
			if err != nil {
				if err := d.unread(r, err); err != nil {
					return nil, err
				}
				continue
			}
			if e, ok := graph.EntityOf(&m); ok {
				d.Entities = append(d.Entities, e)
			}
			if len(d.Entities) == 4*MostRows {
				d.More = true
				break
			}
		}
	}
	d.draw()
	title := "Graph"
	if d.Name != "" {
		title = shortened(visible(d.Name), 60)
	}
	return &view{template: "graph", title: title, data: d}, nil
}

// draw sets d.Drawing to a drawing of the relations. If there are more than mostDrawn entities, it draws the entities
// with the most relations.
func (d *shownGraph) draw() {
	degree := map[string]int{}
	for _, e := range d.Edges {
		degree[e.From]++
		degree[e.To]++
	}
	names := sortedNames(anyMap(degree))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(degree[b], degree[a]) })
	if d.Name != "" { // in the middle
		names = slices.DeleteFunc(names, func(n string) bool { return n == d.Name })
		names = append([]string{d.Name}, names...)
	}
	g, of := &drawing{}, map[string]int{}
	for _, name := range names[:min(len(names), mostDrawn)] {
		of[name] = g.node(shortened(visible(name), 28), link("graph", "name", name), "")
	}
	for _, e := range d.Edges {
		from, ok := of[e.From]
		to, both := of[e.To]
		if ok && both && from != to {
			g.edge(from, to, shortened(visible(e.Type), 24))
		}
	}
	if len(g.Nodes) > 1 {
		g.place()
		d.Drawing = g
	}
}

func anyMap[T any](m map[string]T) map[string]any {
	all := make(map[string]any, len(m))
	for name, v := range m {
		all[name] = v
	}
	return all
}

// drawing is a graph whose nodes have positions, for an SVG image.
type drawing struct {
	Nodes         []drawnNode
	Edges         []drawnEdge
	Width, Height int
}

type drawnNode struct {
	Name, Link, Class string
	X, Y              int
	Anchor            string // alignment of the node's name in SVG: start, middle or end
	NameX, NameY      int
}

type drawnEdge struct {
	Name                   string
	X1, Y1, X2, Y2, MX, MY int
	from, to               int
}

func (g *drawing) node(name, to, class string) int {
	g.Nodes = append(g.Nodes, drawnNode{Name: name, Link: to, Class: class})
	return len(g.Nodes) - 1
}

func (g *drawing) edge(from, to int, name string) {
	g.Edges = append(g.Edges, drawnEdge{from: from, to: to, Name: name})
}

// place puts the first node into the middle and the others around it, on one or two ellipses. It always computes
// the same positions for the same graph, and does not search for a better layout.
func (g *drawing) place() {
	g.Width, g.Height = 760, 420
	if len(g.Nodes) > 20 {
		g.Height = 620
	}
	cx, cy := float64(g.Width)/2, float64(g.Height)/2
	around := len(g.Nodes) - 1
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if i == 0 {
			n.X, n.Y, n.Anchor = int(cx), int(cy), "middle"
			n.NameX, n.NameY = n.X, n.Y-12
			continue
		}
		angle := 2*math.Pi*float64(i-1)/float64(around) - math.Pi/2
		rx, ry := cx-200, cy-40
		if around > 12 && i%2 == 0 {
			rx, ry = rx*0.6, ry*0.62
		}
		n.X, n.Y = int(cx+rx*math.Cos(angle)), int(cy+ry*math.Sin(angle))
		n.Anchor, n.NameX, n.NameY = "start", n.X+10, n.Y+4
		switch c := math.Cos(angle); {
		case c < -0.15:
			n.Anchor, n.NameX = "end", n.X-10
		case c < 0.15:
			n.Anchor, n.NameX, n.NameY = "middle", n.X, n.Y-12
			if math.Sin(angle) > 0 {
				n.NameY = n.Y + 22
			}
		}
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		a, b := g.Nodes[e.from], g.Nodes[e.to]
		e.X1, e.Y1, e.X2, e.Y2 = a.X, a.Y, b.X, b.Y
		e.MX, e.MY = (a.X+2*b.X)/3, (a.Y+2*b.Y)/3-4
	}
}
