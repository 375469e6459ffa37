package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// screen is a terminal of 80 columns for commands on one store.
type screen struct {
	t           *testing.T
	memctl, dir string
	env         []string
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	proofs.ManyProcesses(t, "every screen is a process")
	memctl, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	return &screen{t, memctl, t.TempDir(), []string{"TERM=xterm"}}
}

func (s *screen) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.memctl, args...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "VARVE_STORE=" + filepath.Join(s.dir, "storage")}, s.env...)
	return cmd
}

// piped is what a program reads.
func (s *screen) piped(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).Output()
	if err != nil {
		s.t.Fatalf("memctl %q: %v", args, err)
	}
	return string(out)
}

// shows is what a terminal of 80 columns is sent.
func (s *screen) shows(args ...string) string {
	s.t.Helper()
	return onTerminalOf(s.t, unix.Winsize{Row: 24, Col: 80}, s.command(args...), "")
}

var colour = regexp.MustCompile("\x1b\\[[0-9]*m")

// At 80 columns most of a list is text, and each id that is shown names one memory.
func TestScreenList(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	var in strings.Builder
	for i := range 40 {
		fmt.Fprintf(&in, `{"content":"%d: %s","metadata":{"session_id":"a-session-with-a-long-name"}}`+"\n", i, strings.Repeat("words ", 20))
	}
	for _, pair := range []string{"1", "2"} { // endings of 6 characters are not enough
		fmt.Fprintf(&in, `{"id":"0190f3a5-0000-7000-8000-00000%saaaaaa","content":"alike"}`+"\n", pair)
	}
	writeFile(t, filepath.Join(s.dir, "in.jsonl"), in.String())
	s.piped("put", "--json-input", "in.jsonl")
	for _, args := range [][]string{{"list"}, {"search", "words", "-n", "50"}, {"list", "--sort", "-created"}} {
		rows := strings.Split(strings.TrimSpace(colour.ReplaceAllString(s.shows(args...), "")), "\n")
		if len(rows) < 40 || !strings.HasPrefix(rows[0], "ID ") {
			t.Fatalf("%q", rows)
		}
		at := strings.Index(rows[0], "TEXT")
		if at < 0 || at > 30 {
			t.Errorf("memctl %q: the text begins in column %d: %s", args, at, rows[0])
		}
		seen := map[string]bool{}
		for _, row := range rows[1:] {
			short, _, _ := strings.Cut(row, " ")
			if len([]rune(row)) > 80 || len(short) < 6 || len(short) > 8 || seen[short] {
				t.Errorf("memctl %q: %q", args, row)
			}
			seen[short] = true
			if got := s.piped("get", short, "-o", "id"); !strings.HasSuffix(got, short+"\n") || len(got) != 37 {
				t.Errorf("get %s: %q", short, got)
			}
		}
	}
	whole := regexp.MustCompile(`(?m)^[0-9a-f-]{36}\b`)
	for _, args := range [][]string{{"list"}, {"list", "-o", "table"}, {"list", "-o", "id"}, {"list", "-n", "0"}} {
		if n := len(whole.FindAllString(s.piped(args...), -1)); n != 42 {
			t.Errorf("memctl %q to a pipe: %d whole ids", args, n)
		}
	}
	if out := s.shows("list", "-o", "id"); len(whole.FindAllString(out, -1)) != 42 {
		t.Errorf("list -o id on a terminal: %q", out)
	}
}

// A table that is too long to be held has whole ids, and all rows.
func TestScreenLongList(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	writeFile(t, filepath.Join(s.dir, "in.jsonl"), strings.Repeat(`{"content":"x"}`+"\n", 1100))
	s.piped("put", "--json-input", "in.jsonl")
	rows := strings.Split(strings.TrimSpace(colour.ReplaceAllString(s.shows("list", "-n", "0"), "")), "\n")
	if len(rows) != 1101 || !regexp.MustCompile(`^[0-9a-f-]{36} `).MatchString(rows[1]) || len(rows[1]) != len(rows[1100]) {
		t.Errorf("%d rows: %q", len(rows), rows[:min(2, len(rows))])
	}
}

// put tells a person how to find the memory, and a program its id.
func TestScreenPut(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	told := s.shows("put", "found again")
	m := regexp.MustCompile(`^stored …([0-9a-f]{6}); show it: memctl get ([0-9a-f]{6})\n$`).FindStringSubmatch(told)
	if m == nil || m[1] != m[2] {
		t.Fatalf("%q", told)
	}
	if got := s.piped("get", m[2], "--content"); got != "found again" {
		t.Errorf("%q", got)
	}
	if got := s.shows("put", "x", "--id", "a b"); got != "stored a b; show it: memctl get 'a b'\n" {
		t.Errorf("%q", got)
	}
	writeFile(t, filepath.Join(s.dir, "one.json"), `{"id":"later","content":"x","created_at":"2099-01-01T00:00:00Z"}`)
	for _, again := range []struct {
		args []string
		want string
	}{
		{[]string{"put", "--json-input", filepath.Join(s.dir, "one.json")}, "stored later; show it: memctl get later\n"},
		{[]string{"put", "--json-input", filepath.Join(s.dir, "one.json")}, "replaced later; earlier versions: memctl history later\n"},
		{[]string{"put", "y", "--id", "later"}, "replaced later; earlier versions: memctl history later\n"},
		{[]string{"put", "y", "--id=-v"}, "stored -v; show it: memctl get -- -v\n"},
		{[]string{"put", "y", "--id", "a b"}, "replaced a b; earlier versions: memctl history 'a b'\n"},
		{[]string{"put", "y", "--append", "a b"}, "changed a b; earlier versions: memctl history 'a b'\n"},
	} {
		if got := s.shows(again.args...); got != again.want {
			t.Errorf("memctl %q: %q", again.args, got)
		}
	}
	id := regexp.MustCompile(`^[0-9a-f-]{36}\n$`)
	if got := s.shows("put", "x", "-q"); !id.MatchString(got) {
		t.Errorf("put -q: %q", got)
	}
	if got := s.piped("put", "x"); !id.MatchString(got) {
		t.Errorf("put to a pipe: %q", got)
	}
	if got := s.shows("get", m[2], "--content"); got != "found again\n" {
		t.Errorf("get --content: %q", got)
	}
}

// A terminal gets a document without its embedding, everything else byte for byte.
func TestScreenEmbedding(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	s.piped("put", "x", "--id", "v", "--embedding", "[0.5,0.25]")
	with := s.piped("get", "v")
	for _, g := range []struct {
		has  bool
		args []string
	}{{false, nil}, {true, []string{"--embedding"}}, {true, []string{"--raw"}}, {false, []string{"--no-embedding"}}, {true, []string{"--json"}}, {false, []string{"--json", "--no-embedding"}}} {
		if got := s.shows(append([]string{"get", "v"}, g.args...)...); strings.Contains(got, "0.25") != g.has || !strings.Contains(got, `"content"`) {
			t.Errorf("get %q: %s", g.args, got)
		}
	}
	if !strings.Contains(with, "0.25") {
		t.Errorf("get to a pipe: %s", with)
	}
}

// Colours are used on a terminal, unless NO_COLOR is set, and as --color says.
func TestScreenColour(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	s.piped("put", "x \x1b[31mred", "--id", "a")
	is := func(what, out string, want bool) {
		t.Helper()
		if colour.MatchString(out) != want {
			t.Errorf("%s: %q", what, out)
		}
		if strings.Contains(out, "\x1b[31mred") {
			t.Errorf("%s: a stored control reaches the stream: %q", what, out)
		}
	}
	is("terminal", s.shows("list"), true)
	is("never", s.shows("list", "--color", "never"), false)
	is("pipe", s.piped("list"), false)
	is("pipe, always", s.piped("list", "-o", "table", "--color", "always"), true)
	s.env = append(s.env, "NO_COLOR=1")
	is("NO_COLOR", s.shows("list"), false)
	is("NO_COLOR, always", s.shows("list", "--color", "always"), true)
	if err := s.command("list", "--color", "blue").Run(); err == nil {
		t.Error("--color blue is accepted")
	}
}

// The words that a search looked for stand out on a terminal, wherever they are cut, and a store's own text
// makes nothing stand out.
func TestScreenMarks(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	s.piped("put", strings.Repeat("before it all ", 40)+"the  ferries of\x01the\x02\tLAKE "+strings.Repeat("go on and on ", 40), "--id", "a")
	out := s.shows("search", "lake ferry")
	for _, want := range []string{"the \x1b[1mferries\x1b[0m of", "\x1b[1mLAKE\x1b[0m"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %q", want, out)
		}
	}
	if strings.ContainsAny(out, "\x01\x02") {
		t.Errorf("%q", out)
	}
	for name, out := range map[string]string{"without colours": s.shows("search", "lake ferry", "--color", "never"), "a pipe": s.piped("search", "lake ferry", "--fragment", "60")} {
		if strings.ContainsAny(out, "\x01\x02\x1b") || !strings.Contains(out, "the ferries of") {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// Ctrl-C of a person ends the commands that wait with 130 and a word on why.
func TestScreenInterrupt(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	s.piped("put", "x")
	for _, args := range [][]string{{"watch", "--since", "0"}, {"mcp"}, {"put", "-"}} {
		tty, line := openPty(t, unix.Winsize{Row: 24, Col: 80})
		cmd := s.command(args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = line.Close()
		w := &waiter{t: t, cmd: cmd, ended: make(chan struct{})}
		go func() {
			_ = cmd.Wait()
			close(w.ended)
		}()
		var sent strings.Builder
		read := make(chan struct{})
		b := make([]byte, 1)
		if args[0] != "put" { // they say that they wait
			n, err := tty.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			sent.Write(b[:n])
		}
		go func() {
			_, _ = io.Copy(&sent, tty)
			close(read)
		}()
		if args[0] == "put" && !w.until(inCall(unix.SYS_READ, "0x0 ")) {
			t.Fatal("put - does not read")
		}
		if _, err := tty.WriteString("\x03"); err != nil { // the line discipline makes a signal of it
			t.Fatal(err)
		}
		<-w.ended
		<-read
		if code := cmd.ProcessState.ExitCode(); code != cli.CodeInterrupted || !strings.Contains(colour.ReplaceAllString(sent.String(), ""), "memctl: interrupted") {
			t.Errorf("memctl %q: exit code %d: %q", args, code, sent.String())
		}
	}
}

// What memctl itself says at length is broken between words, and is the same words elsewhere.
func TestScreenWidth(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.piped("init")
	for _, args := range [][]string{{"help"}, {"help", "put"}, {"help", "exit-codes"}, {"restore", "--help"}, {"config"}, {"status"}} {
		shown := colour.ReplaceAllString(s.shows(args...), "")
		for line := range strings.Lines(shown) {
			example := strings.HasPrefix(line, "  memctl ") || strings.Contains(line, s.dir) // is to be copied
			if n := uniseg.StringWidth(strings.TrimSpace(line)); n > 80 && !example {
				t.Errorf("memctl %q: %d columns: %q", args, n, line)
			}
		}
		if args[0] != "status" && !slices.Equal(strings.Fields(shown), strings.Fields(s.piped(args...))) {
			t.Errorf("memctl %q: other words on a terminal:\n%s", args, shown)
		}
	}
}
