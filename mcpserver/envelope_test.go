package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve/served"
)

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Two ids are equal if JSON says so, however they are written.
func TestIDKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, same := range [][]string{
		{`1`, `1.0`, `10e-1`, `0.1E1`, `1.000e+0`}, {`"1"`, `"\u0031"`}, {`0`, `-0`, `0.0`, `-0e5`}, {`-1`, `-1.0`}, {`10`, `1e1`, `0.1e2`},
		{`9007199254740992`}, {`9007199254740993`, `9007199254740993.0`}, {`1e400`, `10e399`}, {`1e999999999999999999999`}, {`""`}, {`"a"`}, {`"A"`}, {`"n1e0"`},
		{`"\ud800"`}, {`"\ud801"`}, {`"\ufffd"`, "\"\ufffd\""},
	} {
		for _, id := range same {
			key, ok := idKey([]byte(id))
			if !ok {
				t.Errorf("%s is no id", id)
			}
			first, _ := idKey([]byte(same[0]))
			if key != first {
				t.Errorf("%s is not %s", id, same[0])
			}
			if of, ok := seen[key]; ok && of != i {
				t.Errorf("%s is one of others", id)
			}
			seen[key] = i
		}
	}
	for _, id := range []string{``, `null`, `true`, `{}`, `[1]`, `1.5`, `1e-1`, `-0.1`, `01`, `1.`, `+1`, "\"\xff\"", `"`, `1` + strings.Repeat("0", maxNumber)} {
		if key, ok := idKey([]byte(id)); ok {
			t.Errorf("%s is an id, %s", id, key)
		}
	}
}

// transcript is what a server writes for these lines, each line followed by a ping whose answer
// ends what belongs to the line.
func transcript(t *testing.T, lines []string) []string {
	t.Helper()
	st := openStore(t, t.TempDir(), nil)
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := New(served.Only(st), both).Run(t.Context(), Stdio(in, out, nil))
		_ = out.CloseWithError(io.EOF)
		ended <- err
	}()
	answers := bufio.NewReader(receive)
	greeted := make(chan struct{})
	go func() {
		_, _ = io.WriteString(send, hello)
		<-greeted // its id, 0, is free again
		for i, line := range lines {
			_, _ = io.WriteString(send, line+"\n")
			_, _ = fmt.Fprintf(send, `{"jsonrpc":"2.0","id":"end of %d","method":"ping"}`+"\n", i)
		}
		_ = send.Close()
	}()
	first, err := answers.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	close(greeted)
	all, err := io.ReadAll(answers)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(first+string(all)), "\n")
}

// countOf is how many of the lines begin so.
func countOf(lines []string, with string) (n int) {
	for _, l := range lines {
		if strings.HasPrefix(l, with) {
			n++
		}
	}
	return n
}

// Every id comes back as it came, byte for byte.
func TestIDsComeBack(t *testing.T) {
	t.Parallel()
	ids := []string{`9007199254740993`, `123456789012345678901234567890`, `-9223372036854775809`, `1e400`, `-0`, `1.0`, `1E2`, `""`, `"é"`, `"a\u0062\/\"\\"`, `"\ud83d\ude00"`, `"\ud800"`, `"<&>"`, "\"\u2028\"", `"` + strings.Repeat("long ", 50_000) + `"`}
	var pings, wrong []string
	for _, id := range ids {
		pings, wrong = append(pings, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), append(wrong, `{"method":"no/such","id" : `+id+` ,"jsonrpc":"2.0"}`)
	}
	got := append(transcript(t, pings), transcript(t, wrong)...)
	for _, id := range ids {
		if n := countOf(got, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`); n != 1 {
			t.Errorf("%.100s: %d results", id, n)
		}
		if n := countOf(got, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601,`); n != 1 {
			t.Errorf("%.100s: %d errors", id, n)
		}
	}
}

// Whatever a line is, it is answered: with what is wrong, and the id if there is one.
func TestLinesAreAnswered(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	call := func(id, arguments string) string {
		return `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_graph","arguments":` + arguments + `},"id":` + id + `}`
	}
	const invalid, noJSON = -32600, -32700
	for _, c := range []struct {
		line string
		id   string
		code int // 0: a result
	}{
		{`not json`, `null`, noJSON}, {`{"jsonrpc":"2.0","id":50,"method":"ping"`, `null`, noJSON}, {`{"jsonrpc":"2.0","id":50,"method":"ping"} x`, `null`, noJSON},
		{"\x00", `null`, noJSON}, {"\xff\xfe", `null`, noJSON}, {strings.Repeat("[", 500), `null`, noJSON}, {`[{"jsonrpc":"2.0","id":50,"method":"ping"}`, `null`, noJSON},
		{`[]`, `null`, invalid}, {` [ 1, {} ] `, `null`, invalid}, {deep(5000), `null`, invalid}, {`[{"jsonrpc":"2.0","id":51,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]`, `51`, invalid},
		{`{}`, `null`, invalid}, {`5`, `null`, invalid}, {`null`, `null`, invalid}, {`"x"`, `null`, invalid},
		{`{"jsonrpc":"2.0","id":52}`, `52`, invalid}, {`{"id":53,"method":"ping"}`, `53`, invalid}, {`{"jsonrpc":"1.0","id":54,"method":"ping"}`, `54`, invalid}, {`{"jsonrpc":"2.0","id":"55","method":7}`, `"55"`, invalid},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `null`, invalid}, {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `1.5`, invalid}, {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `null`, invalid}, {"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", `null`, invalid},
		{call(`60`, `{"x":`+deep(990)+`}`), `60`, 0}, {call(`61`, `{"x":`+deep(1000)+`}`), `61`, invalid}, {call(`"6\u0032"`, deep(20_000)), `"6\u0032"`, invalid},
		{call(`63`, `{"x":[`+strings.Repeat("1,", maxValues)+`1]}`), `63`, invalid},
		{`{"jsonrpc":"2.0","id":64,"method":"tools/list","params":{"x":"` + strings.Repeat("x", maxRest) + `"}}`, `64`, invalid},
		{call(`70`, "{\"x\":\"\xff\"}"), `70`, 0}, {`{"jsonrpc":"1.0","id":70,"id":71,"method":"no","method":"ping","jsonrpc":"2.0"}`, `71`, 0},
		{"\ufeff" + `{"jsonrpc":"2.0","id":72,"method":"ping"}`, `72`, 0}, {`{"jsonrpc":"2.0","id":73,"method":"ping"}` + "\r", `73`, 0}, {" \r\n\t\n" + `{"jsonrpc":"2.0","id":74,"method":"ping"}`, `74`, 0},
		{`{"jsonrpc":"2.0","id":75,"result":{}}`, ``, 0}, {`{"jsonrpc":"2.0","id":75,"error":7}`, ``, 0}, {`{"jsonrpc":"2.0","method":"notifications/no/such"}`, ``, 0}, {``, ``, 0},
	} {
		t.Run(fmt.Sprintf("%.60q", c.line), func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, l := range transcript(t, []string{c.line}) {
				if !strings.HasPrefix(l, `{"jsonrpc":"2.0","id":0,`) && !strings.HasPrefix(l, `{"jsonrpc":"2.0","id":"end of`) {
					got = append(got, l)
				}
			}
			if c.id == "" {
				if len(got) > 0 {
					t.Errorf("answered: %s", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":`+c.id+`,`) {
				t.Fatalf("%.300q", got)
			}
			var a struct {
				Error *jsonrpc.Error
			}
			if err := json.Unmarshal([]byte(got[0]), &a); err != nil {
				t.Fatal(err)
			}
			if a.Error == nil && c.code != 0 || a.Error != nil && int(a.Error.Code) != c.code {
				t.Errorf("%s", got[0])
			}
		})
	}
}

// answerProbe answers the ping with which Stdio asks a server what it takes.
func answerProbe(t *testing.T, c mcp.Connection) {
	t.Helper()
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: handed(t, c).ID, Result: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
}

// handed is the next call that Stdio has the SDK run.
func handed(t *testing.T, c mcp.Connection) *jsonrpc.Request {
	t.Helper()
	m, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.(*jsonrpc.Request)
}

// A second call with the id of one that is not answered is refused, and changes nothing for
// the first, nor for the calls behind it. An id may be used again when it is answered.
func TestSameIDTwice(t *testing.T) {
	t.Parallel()
	in, send := io.Pipe()
	var out lockedBuffer
	c, err := Stdio(in, &out, nil).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer send.Close()
	type made struct {
		r    *jsonrpc.Request
		want string
	}
	say := func(line string) {
		if _, err := io.WriteString(send, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	go func() {
		for _, id := range []string{`7`, `7`, `7.0`, `"7"`, `70e-1`, `8`} {
			say(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		}
	}()
	var all []made
	for _, want := range []string{`7`, `"7"`, `8`} {
		all = append(all, made{handed(t, c), want})
	}
	for _, m := range all {
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: m.r.ID, Result: json.RawMessage(`{"of":` + m.want + `}`)}); err != nil {
			t.Error(err)
		}
	}
	go say(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: handed(t, c).ID, Result: json.RawMessage(`{"of":"the second"}`)}); err != nil {
		t.Error(err)
	}
	_ = send.Close()
	if _, err := c.Read(t.Context()); err != io.EOF {
		t.Error(err)
	}
	got := out.String()
	for _, want := range []string{`"id":7,"result":{"of":7}`, `"id":"7","result":{"of":"7"}`, `"id":8,"result":{"of":8}`, `"id":7,"result":{"of":"the second"}`, `"id":7,"error":{"code":-32600,`, `"id":7.0,"error":{"code":-32600,`, `"id":70e-1,"error":{"code":-32600,`} {
		if n := strings.Count(got, `{"jsonrpc":"2.0",`+want); n != 1 {
			t.Errorf("%s is there %d times:\n%s", want, n, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 7 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}
