package mcpserver

import (
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// order holds a call back until the earlier ones of its connection are answered on which
// it may depend: the SDK runs all that come in beside each other, and a client need not
// wait for one answer before it sends the next call. Calls that have nothing to do with
// each other still run at once, and share a commit. It is not safe for concurrent use.
type order struct {
	calls []*call // that are not answered, as they came
}

type call struct {
	*jsonrpc.Request
	reach   *reach // nil until it is asked for
	running bool
}

// reach is what a call reads or writes.
type reach struct {
	all   bool
	reads bool            // and writes nothing
	wide  bool            // and writes relations whose other ends it does not name
	of    map[string]bool // names of entities, and of what is no entity behind a NUL
}

// add takes a call that has come in; false where no order holds for it.
func (o *order) add(r *jsonrpc.Request) bool {
	if !r.IsCall() || r.Method != "tools/call" && r.Method != "resources/read" {
		return false
	}
	o.calls = append(o.calls, &call{Request: r})
	return true
}

// next is a call that may run now, nil where there is none.
func (o *order) next() *jsonrpc.Request {
	for i, c := range o.calls {
		if !c.running && !slices.ContainsFunc(o.calls[:i], c.after) {
			c.running = true
			return c.Request
		}
	}
	return nil
}

// waits says that some call does not run yet.
func (o *order) waits() bool {
	return slices.ContainsFunc(o.calls, func(c *call) bool { return !c.running })
}

// answered says that a call is over.
func (o *order) answered(id jsonrpc.ID) {
	o.calls = slices.DeleteFunc(o.calls, func(c *call) bool { return c.running && c.ID == id })
}

// cancelled says that the client has given up a call. One that runs does not hold up
// others any more, one that does not never will: waited says that it is one of these.
func (o *order) cancelled(id jsonrpc.ID) (waited bool) {
	o.calls = slices.DeleteFunc(o.calls, func(c *call) bool {
		waited = waited || c.ID == id && !c.running
		return c.ID == id
	})
	return waited
}

// after says whether a call must wait for an earlier one.
func (c *call) after(earlier *call) bool {
	for _, c := range []*call{c, earlier} {
		if c.reach == nil {
			c.reach = reachOf(c.Request)
		}
	}
	a, b := c.reach, earlier.reach
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
	if r.Method == "resources/read" {
		return &reach{all: true, reads: true}
	}
	type ends struct{ From, To string }
	type named struct{ Name, EntityName string }
	var p struct {
		Name      string
		Arguments struct {
			Entities, Observations, Deletions []named
			Relations                         []ends
			EntityNames, Names                []string
			Session, Category, Key            string
		}
	}
	if json.Unmarshal(r.Params, &p) != nil {
		return &reach{all: true} // it is an error, and that is told at once
	}
	to, a := &reach{of: map[string]bool{}}, &p.Arguments
	switch p.Name {
	case "create_entities", "add_observations", "delete_observations", "create_relations", "delete_relations", "delete_entities", "open_nodes":
		to.reads, to.wide = p.Name == "open_nodes", p.Name == "delete_entities"
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
			to.of["\x00"+keyed(a.Session, a.Category, a.Key)] = true
		}
	case "read_graph", "search_nodes", "recall", "list_memories":
		to.all, to.reads = true, true
	case "forget":
		to.all = true
	default: // working memory is a session's
		to.of["\x00"+a.Session] = true
	}
	return to
}
