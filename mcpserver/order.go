package mcpserver

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// order holds a call back until the earlier ones of its connection are answered on which
// it may depend: the SDK runs all that come in beside each other, and a client need not
// wait for one answer before it sends the next call. Calls that have nothing to do with
// each other still run at once, and share a commit. It is not safe for concurrent use.
type order struct {
	calls []*call // that are not answered, as they came; those that run are among the first inSight
	free  []*call // that wait and for which no order holds, as they came
	busy  []*call // the same, that run
}

// How many calls run at once; and how many that wait are compared with each other: the
// others wait for these.
const (
	maxRunning = 32
	maxBig     = 2
	maxFree    = 16
	inSight    = 128
)

// call is one of the client's.
type call struct {
	*jsonrpc.Request // as the SDK gets it: with an id of ours
	id               []byte
	key              string // of the id
	size, large      int64  // that it takes of what may be in flight
	listens          bool   // it has no end of its own

	reach   *reach // nil until it is asked for
	running bool
	givenUp bool // it needs no answer
	written bool // its answer is, or is being written

	aside
}

// reach is what a call reads or writes.
type reach struct {
	all   bool
	reads bool            // and writes nothing
	wide  bool            // and writes relations whose other ends it does not name
	big   bool            // it may need much memory: few run at once
	of    map[string]bool // names of entities, and of what is no entity behind a NUL
}

// add takes a call that has come in; false where no order holds for it.
func (o *order) add(r *jsonrpc.Request) bool { return o.take(&call{Request: r}) }

func (o *order) take(c *call) bool {
	if !c.IsCall() {
		return false
	}
	switch c.Method {
	case "tools/call", "resources/read", "initialize":
		o.calls = append(o.calls, c)
		return true
	}
	o.free = append(o.free, c)
	return false
}

// run takes a call that runs already.
func (o *order) run(c *call) {
	c.running = true
	o.busy = append(o.busy, c)
}

// next is a call that may run now, nil where there is none. There may be thousands: it looks at
// the first inSight.
func (o *order) next() *jsonrpc.Request {
	if len(o.free) > 0 && count(o.busy, (*call).held) < maxFree {
		c := o.free[0]
		o.free[0] = nil
		o.free = o.free[1:]
		o.run(c)
		return c.Request
	}
	first := o.calls[:min(len(o.calls), inSight)]
	if count(first, (*call).runs) >= maxRunning {
		return nil
	}
	big := count(first, (*call).runsBig)
	for i, c := range first {
		if !c.running && !slices.ContainsFunc(first[:i], c.after) && (big < maxBig || !c.reaches().big) {
			c.running = true
			return c.Request
		}
	}
	return nil
}

func (c *call) runs() bool    { return c.running }
func (c *call) held() bool    { return !c.listens }
func (c *call) runsBig() bool { return c.running && c.reaches().big }

func count(list []*call, is func(*call) bool) (n int) {
	for _, c := range list {
		if is(c) {
			n++
		}
	}
	return n
}

// waits reports whether some call does not run yet.
func (o *order) waits() bool {
	return len(o.free) > 0 || slices.ContainsFunc(o.calls, func(c *call) bool { return !c.running })
}

// answered says that a call is over.
func (o *order) answered(id jsonrpc.ID) {
	is := func(c *call) bool { return c.running && c.ID == id }
	if i := slices.IndexFunc(o.calls[:min(len(o.calls), inSight)], is); i >= 0 {
		copy(o.calls[1:], o.calls[:i]) // the few before it move, not the thousands behind it
		o.calls[0] = nil
		o.calls = o.calls[1:]
		return
	}
	o.busy = slices.DeleteFunc(o.busy, is)
}

// cancelled reports whether the client has given up a call. One that runs does not hold up
// others any more, one that does not never will: waited says that it is one of these.
func (o *order) cancelled(id jsonrpc.ID) (waited bool) {
	is := func(c *call) bool { return c.ID == id }
	for _, list := range []*[]*call{&o.calls, &o.free, &o.busy} {
		i := slices.IndexFunc(*list, is)
		if i < 0 {
			continue
		}
		c := (*list)[i]
		c.givenUp = true
		if !c.running {
			*list = slices.Delete(*list, i, i+1)
		}
		return !c.running
	}
	return false
}

func (c *call) reaches() *reach {
	if c.reach == nil {
		c.reach = reachOf(c.Request)
	}
	return c.reach
}

// after reports whether a call must wait for an earlier one.
func (c *call) after(earlier *call) bool {
	if earlier.givenUp {
		return false
	}
	a, b := c.reaches(), earlier.reaches()
	switch {
	case a.reads && b.reads:
		return false
	case a.all || b.all, a.wide && b.reads, a.reads && b.wide:
		return true
	}
	if len(b.of) < len(a.of) {
		a, b = b, a
	}
	for name := range a.of {
		if b.of[name] {
			return true
		}
	}
	return false
}

func reachOf(r *jsonrpc.Request) *reach {
	switch r.Method {
	case "initialize":
		return &reach{all: true}
	case "resources/read":
		return &reach{all: true, reads: true, big: true}
	}
	type ends struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	type named struct {
		Name       string `json:"name"`
		EntityName string `json:"entityName"`
	}
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			Entities     []named  `json:"entities"`
			Observations []named  `json:"observations"`
			Deletions    []named  `json:"deletions"`
			Relations    []ends   `json:"relations"`
			EntityNames  []string `json:"entityNames"`
			Names        []string `json:"names"`
			Session      string   `json:"session"`
			Category     string   `json:"category"`
			Key          string   `json:"key"`
		} `json:"arguments"`
	}
	// As the tools read it: names in their case, of two the last.
	if json.Unmarshal(r.Params, &p, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return &reach{all: true} // it is an error, and that is told at once
	}
	to, a := &reach{of: map[string]bool{}}, &p.Arguments
	switch p.Name {
	case "create_entities", "add_observations", "delete_observations", "create_relations", "delete_relations",
		"delete_entities", "open_nodes":
		to.reads, to.wide = p.Name == "open_nodes", p.Name == "delete_entities"
		to.big = to.reads
		for _, list := range [][]named{a.Entities, a.Observations, a.Deletions} {
			for _, n := range list {
				to.of[n.Name+n.EntityName] = true // one of them
			}
		}
		for _, e := range a.Relations {
			to.of[e.From], to.of[e.To] = true, true
		}
		for _, n := range slices.Concat(a.EntityNames, a.Names) {
			to.of[n] = true
		}
	case "remember":
		if a.Key != "" {
			id, _ := keyed(a.Session, a.Category, a.Key)
			to.of["\x00"+id] = true
		}
	case "read_graph", "search_nodes", "recall", "list_memories":
		to.all, to.reads, to.big = true, true, true
	case "forget":
		to.all = true
	default: // working memory is a session's
		to.of["\x00"+a.Session] = true
		to.big = true
	}
	return to
}
