package replaced

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// process is a child process whose output is read line by line.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr lockedBuffer
	ended  chan struct{} // closed when the output was read to its end and the process has ended
	gone   atomic.Bool   // killed by the test
}

// lockedBuffer is a buffer that one goroutine fills while others read it.
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

// start starts cmd. line is called with each line of its output, by one goroutine.
func start(t testing.TB, cmd *exec.Cmd, line func([]byte)) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(p.kill)
	go func() {
		defer close(p.ended)
		for r := bufio.NewReaderSize(out, 1<<16); ; {
			b, err := r.ReadBytes('\n')
			if err != nil {
				break
			}
			line(b)
		}
		_ = cmd.Wait()
	}()
	return p, nil
}

// kill ends the process with SIGKILL, unless it has ended.
func (p *process) kill() {
	select {
	case <-p.ended:
		return
	default:
	}
	p.gone.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wait blocks until the process has ended.
func (p *process) wait() error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(os.Interrupt)
		return fmt.Errorf("the process has not ended after %v", patience)
	}
}

// death describes how the process has ended.
func (p *process) death() string {
	return fmt.Sprintf("%v; stderr: %s", p.cmd.ProcessState, firstLines(p.stderr.String(), 12))
}

// firstLines returns the first lines of a text.
func firstLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = append(lines[:n], "…")
	}
	return strings.Join(lines, "\n\t\t")
}

var errEnded = errors.New("the process has ended")

// library is the test's side of a libraryProcess.
type library struct {
	*process
	rec      *record
	mu       sync.Mutex
	answers  map[string]chan answer
	watchEnd chan answer
	changes  chan string
}

func startLibrary(t testing.TB, dir string, rec *record) (*library, error) {
	l := &library{rec: rec, answers: map[string]chan answer{}}
	l.watchEnd, l.changes = make(chan answer, 1), make(chan string, 1<<16)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(memctlEnv(), "VARVE_CHILD=library", "VARVE_DIR="+dir)
	p, err := start(t, cmd, l.line)
	l.process = p
	return l, err
}

func (l *library) line(b []byte) {
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return
	}
	switch {
	case a.Write != nil:
		l.rec.add(*a.Write)
	case a.WatchEnd:
		l.watchEnd <- a
	case a.Change != "":
		select {
		case l.changes <- a.Change:
		default:
		}
	default:
		l.ends(a.Do) <- a
	}
}

// ends returns the channel on which the ends of one kind of command arrive.
func (l *library) ends(do string) chan answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers[do] == nil {
		l.answers[do] = make(chan answer, 100)
	}
	return l.answers[do]
}

// tell sends a command.
func (l *library) tell(c command) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = l.in.Write(append(b, '\n'))
	return err
}

// await blocks until a command has ended.
func (l *library) await(do string) (answer, error) {
	select {
	case a := <-l.ends(do):
		return a, nil
	case <-l.ended:
		select {
		case a := <-l.ends(do): // it was read before the end
			return a, nil
		default:
		}
		return answer{}, errEnded
	case <-time.After(patience):
		return answer{}, fmt.Errorf("no answer to %s after %v", do, patience)
	}
}

// do sends a command and waits for its end.
func (l *library) do(c command) (answer, error) {
	if err := l.tell(c); err != nil {
		return answer{}, err
	}
	return l.await(c.Do)
}

// mcp is a memctl mcp process, whose client is the test.
type mcp struct {
	*process
	rec    *record
	prefix string

	mu      sync.Mutex
	last    int
	pending map[int]chan json.RawMessage
	names   int

	changed *sync.Cond
	stopped bool
	began   []int
	done    []int
	over    []bool
	writers sync.WaitGroup

	updates chan struct{} // notifications of the subscribed resource
}

func startMCP(t testing.TB, path, prefix string, rec *record) (*mcp, error) {
	name, err := memctl()
	if err != nil {
		return nil, err
	}
	m := &mcp{rec: rec, prefix: prefix, pending: map[int]chan json.RawMessage{}, updates: make(chan struct{}, 1000)}
	m.changed = sync.NewCond(&m.mu)
	cmd := exec.Command(name, "--store", path, "mcp", "--tools", "graph,memory")
	cmd.Env = memctlEnv()
	if m.process, err = start(t, cmd, m.line); err != nil {
		return nil, err
	}
	_, err = m.request("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	if err == nil {
		_, err = io.WriteString(m.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return m, err
}

func (m *mcp) line(b []byte) {
	var a struct {
		ID     *int
		Method string
	}
	if json.Unmarshal(b, &a) != nil {
		return
	}
	if a.ID == nil {
		if a.Method == "notifications/resources/updated" {
			select {
			case m.updates <- struct{}{}:
			default:
			}
		}
		return
	}
	m.mu.Lock()
	c := m.pending[*a.ID]
	delete(m.pending, *a.ID)
	m.mu.Unlock()
	if c != nil {
		c <- b
	}
}

// request sends a call and returns the answer.
func (m *mcp) request(method, params string) (json.RawMessage, error) {
	c := make(chan json.RawMessage, 1)
	m.mu.Lock()
	m.last++
	id := m.last
	m.pending[id] = c
	_, err := fmt.Fprintf(m.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case b := <-c:
		return b, nil
	case <-m.ended:
		select {
		case b := <-c:
			return b, nil
		default:
		}
		return nil, errEnded
	case <-time.After(patience):
		return nil, fmt.Errorf("no answer to %s after %v", method, patience)
	}
}

// tool calls a tool and returns the error in its answer.
func (m *mcp) tool(name, args string) error {
	b, err := m.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
	if err != nil {
		return err
	}
	var a struct {
		Error  *struct{ Message string }
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	switch {
	case a.Error != nil:
		return errors.New(a.Error.Message)
	case a.Result.IsError && len(a.Result.Content) > 0:
		return errors.New(a.Result.Content[0].Text)
	case a.Result.IsError:
		return errors.New("an error without a text")
	}
	return nil
}

// create creates n entities in one call, and records the answer. It reports whether the answer was
// an error.
func (m *mcp) create(n int) (failed bool) {
	w := write{Op: "create_entities", Rev: 1}
	var list []string
	m.mu.Lock()
	for range n {
		m.names++
		name := fmt.Sprintf("%s-%d", m.prefix, m.names)
		w.IDs = append(w.IDs, "entity:"+name)
		list = append(list, fmt.Sprintf(`{"name":%q,"entityType":"t","observations":["o"]}`, name))
	}
	m.mu.Unlock()
	w.Begin = now()
	err := m.tool("create_entities", `{"entities":[`+strings.Join(list, ",")+`]}`)
	w.End = now()
	if err != nil {
		w.Err, w.Replaced = err.Error(), replacedText(err.Error())
	}
	m.rec.add(w)
	return err != nil
}

// replacedText reports whether an error of memctl is errs.ErrReplaced.
func replacedText(s string) bool { return strings.Contains(s, "folder was replaced") }

// write starts the goroutines that write, each one call after the other.
func (m *mcp) write() {
	m.mu.Lock()
	m.stopped = false
	m.began, m.done, m.over = make([]int, writerCount), make([]int, writerCount), make([]bool, writerCount)
	m.mu.Unlock()
	for g := range writerCount {
		m.writers.Go(func() { m.writer(g) })
	}
}

// writer writes until it is stopped, or until three consecutive answers were errors.
func (m *mcp) writer(g int) {
	for errs := 0; ; {
		m.mu.Lock()
		if m.stopped || errs == 3 {
			m.over[g] = true
			m.changed.Broadcast()
			m.mu.Unlock()
			return
		}
		m.began[g]++
		m.mu.Unlock()
		failed := m.create(1 + g%2)
		if errs++; !failed {
			errs = 0
		}
		m.mu.Lock()
		m.done[g]++
		m.changed.Broadcast()
		m.mu.Unlock()
	}
}

// mark blocks until each writer has completed n calls that it began after mark was called, or has ended.
func (m *mcp) mark(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := append([]int(nil), m.began...)
	for g := range m.began {
		for !m.over[g] && m.done[g] < from[g]+n {
			m.changed.Wait()
		}
	}
}

// stop ends the writers.
func (m *mcp) stop() {
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	m.writers.Wait()
}

// watchCommand is a memctl watch process.
type watchCommand struct {
	*process
	mu    sync.Mutex
	cond  *sync.Cond
	shown map[string]bool
	fails []string // lines that are errors
}

func startWatch(t testing.TB, path string) (*watchCommand, error) {
	name, err := memctl()
	if err != nil {
		return nil, err
	}
	w := &watchCommand{shown: map[string]bool{}}
	w.cond = sync.NewCond(&w.mu)
	cmd := exec.Command(name, "--store", path, "watch", "--json", "--since", "0")
	cmd.Env = memctlEnv()
	w.process, err = start(t, cmd, w.line)
	return w, err
}

func (w *watchCommand) line(b []byte) {
	var l struct {
		ID    string
		Error *struct{ Kind, Message string }
	}
	if json.Unmarshal(b, &l) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.Error != nil {
		w.fails = append(w.fails, l.Error.Kind+": "+l.Error.Message)
	}
	w.shown[l.ID] = true
	w.cond.Broadcast()
}

func (w *watchCommand) has(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown[id]
}

// errors returns what the command has printed as errors, on stdout and stderr.
func (w *watchCommand) errors() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.fails, "\n") + w.stderr.String()
}

// run runs memctl to its end.
func run(path string, args ...string) (stdout string, err error) {
	name, err := memctl()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(name, append([]string{"--store", path}, args...)...)
	cmd.Env = memctlEnv()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		err = fmt.Errorf("memctl %s: %w: %s%s", strings.Join(args, " "), err, out.String(), errOut.String())
		return out.String(), err
	}
	return out.String(), nil
}

// until polls until ok returns true, and reports whether it did before the deadline.
func until(deadline time.Duration, ok func() bool) bool {
	for end := time.Now().Add(deadline); ; {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}
