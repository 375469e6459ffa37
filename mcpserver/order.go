package mcpserver

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// order decides when each call of a connection may run: only after all earlier calls on which it may depend are
// answered. This is necessary because the SDK runs all calls that it gets at the same time, and a client may send the
// next call before it has the answer to the previous one. Independent calls still run at the same time, and share a
// commit. An order must not be used by several goroutines at once.
type order struct {
	calls []*call // calls that are not answered, in order of arrival; running ones are among the first inSight
	free  []*call // waiting calls that do not depend on other calls, in order of arrival
	busy  []*call // running calls that do not depend on other calls
}

// Limits: how many calls run at once, and how many waiting calls are compared with each other;
// later ones wait for these.
const (
	maxRunning = 32
	maxBig     = 2
	maxFree    = 16
	inSight    = 128
)

// call is one call of the client.
type call struct {
	*jsonrpc.Request // the request for the SDK, which has a number as its id
	id               []byte
	key              string // the key of the client's id; see idKey
	size, large      int64  // number of bytes of the call that count as in flight, against maxQueued and maxLarge
	listens          bool   // the call listens for changes, so it does not end by itself

	reach   *reach // data that the call reads and writes; nil until it is needed
	running bool
	givenUp bool // the client has cancelled the call: it needs no answer
	written bool // the answer is written or is being written

	aside
}

// reach describes the entities and relations that a call may read or write.
type reach struct {
	all   bool
	reads bool            // the call writes nothing
	wide  bool            // the call writes relations whose other ends it does not name
	big   bool            // the call may need much memory: few such calls run at once
	of    map[string]bool // names of entities, and, after a NUL, other names
}

// add adds a call that has arrived. It returns false if the call does not depend on other calls, so that it may run at
// once.
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

// run adds a call that is already running.
func (o *order) run(c *call) {
	c.running = true
	o.busy = append(o.busy, c)
}

// next returns a waiting call that may run now, and marks it as running; nil if no call may run. It examines only
// the first inSight calls, since there may be thousands.
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
		if !c.running && !slices.ContainsFunc(first[:i], c.mustWaitFor) && (big < maxBig || !c.reaches().big) {
			c.running = true
			return c.Request
		}
	}
	return nil
}

func (c *call) runs() bool    { return c.running }
func (c *call) held() bool    { return !c.listens }
func (c *call) runsBig() bool { return c.running && c.reaches().big }

func count(list []*call, match func(*call) bool) (n int) {
	for _, c := range list {
		if match(c) {
			n++
		}
	}
	return n
}

// waits reports whether any call is waiting to run.
func (o *order) waits() bool {
	return len(o.free) > 0 || slices.ContainsFunc(o.calls, func(c *call) bool { return !c.running })
}

// answered removes a running call that has ended.
func (o *order) answered(id jsonrpc.ID) {
	is := func(c *call) bool { return c.running && c.ID == id }
	if i := slices.IndexFunc(o.calls[:min(len(o.calls), inSight)], is); i >= 0 {
		copy(o.calls[1:], o.calls[:i]) // move the few calls before it, not the thousands after it
		o.calls[0] = nil
		o.calls = o.calls[1:]
		return
	}
	o.busy = slices.DeleteFunc(o.busy, is)
}

// cancelled marks a call as cancelled. If the call is running, other calls no longer wait for it. If the call is still
// waiting, cancelled removes it, so that it will not run, and waited is true.
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

// mustWaitFor reports whether a call must wait for an earlier one, because the two calls may read or write the
// same data.
func (c *call) mustWaitFor(earlier *call) bool {
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
			Key          string   `json:"key"`
		} `json:"arguments"`
	}
	// As the tools parse it: names are case-sensitive, and the last of duplicate names is used.
	if json.Unmarshal(r.Params, &p, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return &reach{all: true} // the call fails at once
	}
	to, a := &reach{of: map[string]bool{}}, &p.Arguments
	switch p.Name {
	case "create_entities", "add_observations", "delete_observations", "create_relations", "delete_relations",
		"delete_entities", "open_nodes":
		to.reads, to.wide = p.Name == "open_nodes", p.Name == "delete_entities"
		to.big = to.reads
		for _, list := range [][]named{a.Entities, a.Observations, a.Deletions} {
			for _, n := range list {
				to.of[n.Name+n.EntityName] = true // only one of the two is set
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
			to.of["\x00"+a.Key+"\x00"+a.Session] = true
		}
	case "read_graph", "search_nodes", "recall", "recent", "context", "history":
		to.all, to.reads, to.big = true, true, true
	case "update", "forget", "undo":
		to.all = true
	case "memory":
		to.of["\x00notes"], to.big = true, true
	default: // working memory belongs to a session
		to.of["\x00"+a.Session] = true
		to.big = true
	}
	return to
}
