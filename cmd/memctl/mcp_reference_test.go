package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/internal/proofs"
)

// exchange is one request of the script; differs names why the answers may differ, and
// then they must.
type exchange struct {
	method, params string
	differs        string
}

func toolCall(name, args string) exchange {
	return exchange{method: "tools/call", params: fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)}
}

func (e exchange) but(why string) exchange { e.differs = why; return e }

// TestAsReference has the reference server and ours answer one script of calls, answer
// by answer. The differences are those that mcpserver's doc.go lists.
func TestAsReference(t *testing.T) {
	proofs.ManyProcesses(t, "a long script")
	t.Parallel()
	root, memctl, dir := npmRoot(t), memctlBinary(t), t.TempDir()
	seed := proofs.Seed(t, 0)
	reference := mcpStart(t, []string{mcpcmd.MemoryFileVariable + "=" + filepath.Join(dir, "memory.jsonl")},
		"node", filepath.Join(root, "node_modules", "@modelcontextprotocol", "server-memory", "dist", "index.js"))
	ours := mcpStart(t, []string{cli.StoreVariable + "=" + filepath.Join(dir, "store")}, memctl, "mcp", "--tools", "graph")
	script := append(fixedScript(), randomScript(rand.New(rand.NewPCG(seed, 0)), 400)...)
	script = append(script, oddScript()...)
	differences := map[string]int{}
	for i, e := range script {
		want, got := reference.request(e.method, json.RawMessage(e.params)), ours.request(e.method, json.RawMessage(e.params))
		if r, ok := got["result"].(map[string]any); ok && e.method != "tools/call" {
			delete(r, "ttlMs")
			delete(r, "cacheScope")
		}
		same := reflect.DeepEqual(got, want)
		switch {
		case !same && e.differs == "":
			t.Fatalf("call %d, %s %s\n ours %v\ntheirs %v", i, e.method, e.params, got, want)
		case same && e.differs != "":
			t.Errorf("call %d, %s %s: no difference, %s", i, e.method, e.params, e.differs)
		case !same:
			differences[e.differs]++
		}
	}
	t.Logf("%d calls; differences: %v", len(script), differences)
	if len(script) < 550 {
		t.Errorf("only %d calls", len(script))
	}
}

// The names that have broken something somewhere.
func hardNames() []string {
	return []string{
		"Ada", "ada", "", " ", "Zoë", "北京", "Ώμος ΟΔΟΣ", "İstanbul", "ǅ", "\u212a", "عربى", "👩\u200d👩\u200d👧", "a|b", "a%7Cb", "a/b\\c", "../../etc/passwd", "CON", "__proto__", "constructor",
		"toString", "line\nfeed\ttab\r", "nul\x00nul", "\u2028\u2029\ufeff", `"quoted" \ 'x'`, "<&>", strings.Repeat("long ", 60), strings.Repeat("é", 2000), "entity:x", "e\u0301 and é", "\x7f\x1b[31m",
	}
}

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func fixedScript() []exchange {
	s := []exchange{{method: "tools/list"}, {method: "resources/list"}, {method: "resources/templates/list"}, {method: "ping"},
		toolCall("read_graph", `{}`), toolCall("search_nodes", `{"query":""}`), toolCall("delete_entities", `{"entityNames":["none"]}`)}
	names := hardNames()
	for i, name := range names {
		n, other := jsonText(name), jsonText(names[(i+1)%len(names)])
		entity := fmt.Sprintf(`{"name":%s,"entityType":%s,"observations":[%s,"twice","twice",%s]}`, n, other, n, other)
		relation := fmt.Sprintf(`{"from":%s,"to":%s,"relationType":%s}`, n, other, n)
		s = append(s,
			toolCall("create_entities", `{"entities":[`+entity+`]}`), toolCall("create_entities", `{"entities":[`+entity+`],"more":1}`),
			toolCall("create_relations", `{"relations":[`+relation+`]}`), toolCall("create_relations", `{"relations":[`+relation+`]}`),
			toolCall("add_observations", fmt.Sprintf(`{"observations":[{"entityName":%s,"contents":["new","new",%s]},{"entityName":%s,"contents":["new","newer"]}]}`, n, n, n)),
			toolCall("open_nodes", fmt.Sprintf(`{"names":[%s,%s,%s]}`, other, n, n)),
			toolCall("search_nodes", fmt.Sprintf(`{"query":%s}`, jsonText(strings.ToUpper(name)))),
			toolCall("delete_observations", fmt.Sprintf(`{"deletions":[{"entityName":%s,"observations":["twice","none"]}]}`, n)),
		)
		if i%3 == 0 {
			s = append(s, toolCall("read_graph", `{}`), exchange{method: "resources/read", params: `{"uri":"memory://knowledge-graph"}`},
				toolCall("delete_relations", `{"relations":[`+relation+`,`+relation+`]}`), toolCall("delete_entities", fmt.Sprintf(`{"entityNames":[%s,%s]}`, n, n)))
		}
	}
	return append(s, toolCall("read_graph", `{}`), toolCall("search_nodes", `{"query":"ς"}`), toolCall("search_nodes", `{"query":"σ"}`), toolCall("search_nodes", `{"query":"ΟΔΟΣ"}`),
		toolCall("search_nodes", `{"query":"i̇"}`), toolCall("search_nodes", `{"query":"K"}`), toolCall("search_nodes", `{"query":"É"}`))
}

// randomScript keeps clear of what differs: one call never names one thing twice.
func randomScript(r *rand.Rand, n int) []exchange {
	var s []exchange
	alphabet := "aAbB"
	word := func() string {
		var b strings.Builder
		for range 1 + r.IntN(2) {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	list := func(one func() string) string {
		seen, all := map[string]bool{}, []string(nil)
		for range r.IntN(4) {
			if v := one(); !seen[v] {
				seen[v] = true
				all = append(all, v)
			}
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	texts := func() string { return list(func() string { return jsonText(word()) }) }
	relations := func() string {
		return list(func() string { return fmt.Sprintf(`{"from":%q,"to":%q,"relationType":%q}`, word(), word(), word()[:1]) })
	}
	for range n {
		switch r.IntN(10) {
		case 0, 1:
			seen := map[string]bool{}
			entities := []string{}
			for range r.IntN(4) {
				if name := word(); !seen[name] {
					seen[name] = true
					entities = append(entities, fmt.Sprintf(`{"name":%q,"entityType":%q,"observations":%s}`, name, word(), texts()))
				}
			}
			s = append(s, toolCall("create_entities", `{"entities":[`+strings.Join(entities, ",")+`]}`))
		case 2, 3:
			s = append(s, toolCall("create_relations", `{"relations":`+relations()+`}`))
		case 4, 5:
			s = append(s, toolCall("add_observations", fmt.Sprintf(`{"observations":[{"entityName":%q,"contents":%s},{"entityName":%q,"contents":%s}]}`, word(), texts(), word(), texts())))
		case 6:
			s = append(s, toolCall("delete_observations", fmt.Sprintf(`{"deletions":[{"entityName":%q,"observations":%s}]}`, word(), texts())))
		case 7:
			if r.IntN(2) == 0 {
				s = append(s, toolCall("delete_entities", `{"entityNames":`+texts()+`}`))
			} else {
				s = append(s, toolCall("delete_relations", `{"relations":`+relations()+`}`))
			}
		case 8:
			s = append(s, toolCall("search_nodes", fmt.Sprintf(`{"query":%q}`, word())))
		case 9:
			s = append(s, toolCall("open_nodes", `{"names":`+texts()+`}`), toolCall("read_graph", `{}`))
		}
	}
	return s
}

// oddScript has what no client should send, and the intended differences.
func oddScript() []exchange {
	var s []exchange
	for _, tool := range []string{"create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations", "delete_relations", "read_graph", "search_nodes", "open_nodes"} {
		for _, args := range []string{`{}`, `{"entities":1,"relations":"x","observations":null,"entityNames":{},"deletions":true,"query":["x"],"names":1.5}`,
			`{"entities":[1,null,"x",[],true,{}],"relations":[1,null,{"from":1}],"observations":[{},{"entityName":[],"contents":[1]}],"entityNames":[1,{}],"deletions":[{"entityName":null,"observations":"x"}],"query":null,"names":[null]}`,
			`[]`, `null`, `"x"`, `1`, `true`} {
			s = append(s, toolCall(tool, args))
		}
		s = append(s, exchange{method: "tools/call", params: fmt.Sprintf(`{"name":%q}`, tool)})
	}
	const notThere = "the text for a method that is not there"
	const once = "one call names it twice"
	const surrogate = "half a surrogate pair"
	return append(s,
		toolCall("no_such_tool", `{}`), toolCall("", `{}`),
		exchange{method: "resources/read", params: `{"uri":"memory://other"}`},
		exchange{method: "resources/subscribe", params: `{"uri":"memory://other"}`}, exchange{method: "resources/unsubscribe", params: `{"uri":"memory://other"}`},
		exchange{method: "prompts/list"}.but(notThere), exchange{method: "no/such"}.but(notThere), exchange{method: "logging/setLevel", params: `{"level":"info"}`}.but(notThere),
		exchange{method: "tools/call", params: `{"arguments":{}}`}.but("a call without a name"),
		toolCall("create_entities", `{"entities":[{"name":"dup","entityType":"a","observations":["1"]},{"name":"dup","entityType":"b","observations":["2"]}]}`).but(once),
		toolCall("open_nodes", `{"names":["dup"]}`).but(once),
		toolCall("delete_entities", `{"entityNames":["dup"]}`),
		toolCall("create_relations", `{"relations":[{"from":"dup","to":"x","relationType":"r"},{"from":"dup","to":"x","relationType":"r"}]}`).but(once),
		toolCall("delete_entities", `{"entityNames":["dup"]}`),
		toolCall("create_entities", `{"entities":[{"name":"half \ud83d","entityType":"t","observations":[]}]}`).but(surrogate),
		toolCall("delete_entities", `{"entityNames":["half \ud83d"]}`),
		toolCall("read_graph", `{}`),
	)
}
