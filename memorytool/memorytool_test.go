package memorytool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/memorytool"
)

func TestMain(m *testing.M) {
	storetest.Main(m, storetest.Jobs(map[string]storetest.Job{"replacing": replacing, "appending": inserting}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t testing.TB, dir string) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func tool(t testing.TB, o memorytool.Options) (*varve.Store, *memorytool.Tool) {
	t.Helper()
	st := opened(t, filepath.Join(t.TempDir(), "storage"))
	m, err := memorytool.New(st.Notes(), o)
	must(t, err)
	return st, m
}

type call map[string]any

func (c call) json() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return b
}

// TestDocumentedTexts has each text of the documentation, in one conversation.
func TestDocumentedTexts(t *testing.T) {
	t.Parallel()
	_, m := tool(t, memorytool.Options{Folder: "agents/ada"})
	const header = "Here're the files and directories up to 2 levels deep in "
	const excluding = ", excluding hidden items and node_modules:\n"
	const snippet = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
	for i, c := range []struct {
		call    call
		want    string
		refused bool
	}{
		// view of a folder
		{call{"command": "view", "path": "/memories"}, header + "/memories" + excluding + "0B\t/memories", false},
		{call{"command": "view", "path": "/memories/"}, header + "/memories" + excluding + "0B\t/memories", false},
		{call{"command": "view", "path": "/memories/x"},
			"The path /memories/x does not exist. Please provide a valid path.", true},
		// create
		{call{"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\nthree\nfour\nfive\nsix\n"},
			"File created successfully at: /memories/a.md", false},
		{call{"command": "create", "path": "/memories/a.md", "file_text": "other"},
			"Error: File /memories/a.md already exists", true},
		{call{"command": "create", "path": "/memories/d/e/f/deep.md", "file_text": strings.Repeat("x", 1536)},
			"File created successfully at: /memories/d/e/f/deep.md", false},
		{call{"command": "create", "path": "/memories/d/e", "file_text": "x"},
			"Error: File /memories/d/e already exists", true},
		{call{"command": "create", "path": "/memories", "file_text": "x"}, "Error: File /memories already exists", true},
		{call{"command": "create", "path": "/memories/d/.hidden", "file_text": "x"},
			"File created successfully at: /memories/d/.hidden", false},
		{call{"command": "create", "path": "/memories/d-1.md", "file_text": ""},
			"File created successfully at: /memories/d-1.md", false},
		{call{"command": "create", "path": "/memories/node_modules/m.md", "file_text": "x"},
			"File created successfully at: /memories/node_modules/m.md", false},
		{call{"command": "view", "path": "/memories"}, header + "/memories" + excluding +
			"1.5K\t/memories\n28B\t/memories/a.md\n1.5K\t/memories/d/\n1.5K\t/memories/d/e/\n0B\t/memories/d-1.md", false},
		{call{"command": "view", "path": "/memories/d/e"}, header + "/memories/d/e" + excluding +
			"1.5K\t/memories/d/e\n1.5K\t/memories/d/e/f/\n1.5K\t/memories/d/e/f/deep.md", false},
		// view of a file
		{call{"command": "view", "path": "/memories/a.md"}, "Here's the content of /memories/a.md with line numbers:\n" +
			"     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\tfive\n     6\tsix", false},
		{call{"command": "view", "path": "/memories/a.md", "view_range": []int{2, 3}},
			"Here's the content of /memories/a.md with line numbers:\n     2\ttwo\n     3\tthree", false},
		{call{"command": "view", "path": "/memories/a.md", "view_range": []int{5, -1}},
			"Here's the content of /memories/a.md with line numbers:\n     5\tfive\n     6\tsix", false},
		{call{"command": "view", "path": "/memories/a.md", "view_range": []int{0, 99}},
			"Here's the content of /memories/a.md with line numbers:\n" +
				"     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\tfive\n     6\tsix", false},
		{call{"command": "view", "path": "/memories/a.md", "view_range": []int{7, -1}},
			"Error: Invalid `view_range` parameter: [7, -1]. It should be within the range of lines of the file: [1, 6]",
			true},
		{call{"command": "view", "path": "/memories/a.md", "view_range": []int{3, 2}},
			"Error: Invalid `view_range` parameter: [3, 2]. It should be within the range of lines of the file: [1, 6]", true},
		{call{"command": "view", "path": "/memories/d-1.md"},
			"Here's the content of /memories/d-1.md with line numbers:", false},
		// str_replace
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "four", "new_str": "4\n4.5"},
			snippet + "     2\ttwo\n     3\tthree\n     4\t4\n     5\t4.5\n     6\tfive\n     7\tsix", false},
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "one\n"},
			snippet + "     1\ttwo\n     2\tthree\n     3\t4", false},
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "six", "new_str": "$& $1 \\1"},
			snippet + "     4\t4.5\n     5\tfive\n     6\t$& $1 \\1", false},
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "seven", "new_str": ""},
			"No replacement was performed, old_str `seven` did not appear verbatim in /memories/a.md.", true},
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "t", "new_str": ""}, "No replacement was " +
			"performed. Multiple occurrences of old_str `t` in lines: 1, 2. Please ensure it is unique", true},
		// two in one line, and two that overlap
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "$", "new_str": ""},
			"No replacement was performed. Multiple occurrences of old_str `$` in lines: 6. Please ensure it is unique", true},
		{call{"command": "str_replace", "path": "/memories/d/e/f/deep.md", "old_str": strings.Repeat("x", 1535),
			"new_str": ""}, "No replacement was performed. Multiple occurrences of old_str `" + strings.Repeat("x", 1535) +
			"` in lines: 1. Please ensure it is unique", true},
		{call{"command": "str_replace", "path": "/memories/no.md", "old_str": "a", "new_str": "b"},
			"Error: The path /memories/no.md does not exist. Please provide a valid path.", true},
		{call{"command": "str_replace", "path": "/memories/d", "old_str": "a", "new_str": "b"},
			"Error: The path /memories/d does not exist. Please provide a valid path.", true},
		{call{"command": "str_replace", "path": "/memories", "old_str": "a", "new_str": "b"},
			"Error: The path /memories does not exist. Please provide a valid path.", true},
		{call{"command": "str_replace", "path": "/memories/a.md", "old_str": "", "new_str": "b"},
			"Error: Invalid `old_str` parameter: must not be empty", true},
		// insert
		{call{"command": "insert", "path": "/memories/d-1.md", "insert_line": 0, "insert_text": "last"},
			"The file /memories/d-1.md has been edited.", false},
		{call{"command": "insert", "path": "/memories/d-1.md", "insert_line": 0, "insert_text": "first"},
			"The file /memories/d-1.md has been edited.", false},
		{call{"command": "insert", "path": "/memories/d-1.md", "insert_line": "1", "insert_text": "between\n"},
			"The file /memories/d-1.md has been edited.", false},
		{call{"command": "insert", "path": "/memories/d-1.md", "insert_line": 3, "insert_text": "behind\n"},
			"The file /memories/d-1.md has been edited.", false},
		{call{"command": "view", "path": "/memories/d-1.md"}, "Here's the content of /memories/d-1.md with line numbers:\n" +
			"     1\tfirst\n     2\tbetween\n     3\tlast\n     4\tbehind", false},
		{call{"command": "insert", "path": "/memories/d-1.md", "insert_line": 5, "insert_text": "x"},
			"Error: Invalid `insert_line` parameter: 5. It should be within the range of lines of the file: [0, 4]", true},
		{call{"command": "insert", "path": "/memories/d-1.md", "insert_line": -1, "insert_text": "x"},
			"Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the file: [0, 4]", true},
		{call{"command": "insert", "path": "/memories/no.md", "insert_line": 0, "insert_text": "x"},
			"Error: The path /memories/no.md does not exist", true},
		{call{"command": "insert", "path": "/memories/d", "insert_line": 0, "insert_text": "x"},
			"Error: The path /memories/d does not exist", true},
		// rename
		{call{"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b/a.md"},
			"Successfully renamed /memories/a.md to /memories/b/a.md", false},
		{call{"command": "rename", "old_path": "/memories/d", "new_path": "/memories/g"},
			"Successfully renamed /memories/d to /memories/g", false},
		{call{"command": "rename", "old_path": "/memories/no", "new_path": "/memories/h"},
			"Error: The path /memories/no does not exist", true},
		{call{"command": "rename", "old_path": "/memories/d-1.md", "new_path": "/memories/b/a.md"},
			"Error: The destination /memories/b/a.md already exists", true},
		{call{"command": "rename", "old_path": "/memories/d-1.md", "new_path": "/memories/g"},
			"Error: The destination /memories/g already exists", true},
		{call{"command": "rename", "old_path": "/memories/g", "new_path": "/memories/b/a.md"},
			"Error: The destination /memories/b/a.md already exists", true},
		{call{"command": "rename", "old_path": "/memories/g", "new_path": "/memories/b"},
			"Error: The destination /memories/b already exists", true},
		{call{"command": "rename", "old_path": "/memories/g", "new_path": "/memories/g"},
			"Error: The destination /memories/g already exists", true},
		{call{"command": "rename", "old_path": "/memories/g", "new_path": "/memories"},
			"Error: The destination /memories already exists", true},
		{call{"command": "rename", "old_path": "/memories", "new_path": "/memories/h"},
			"Cannot rename the /memories directory itself", true},
		// delete
		{call{"command": "delete", "path": "/memories/d-1.md"}, "Successfully deleted /memories/d-1.md", false},
		{call{"command": "delete", "path": "/memories/g/"}, "Successfully deleted /memories/g", false},
		{call{"command": "delete", "path": "/memories/g"}, "Error: The path /memories/g does not exist", true},
		{call{"command": "delete", "path": "/memories"}, "Cannot delete the /memories directory itself", true},
		{call{"command": "delete", "path": "/memories//"}, "Cannot delete the /memories directory itself", true},
		// what is outside of /memories, and calls without a parameter
		{call{"command": "view", "path": "/memoriesX"}, "Error: Path must start with /memories, got: /memoriesX", true},
		{call{"command": "view", "path": "memories/a"}, "Error: Path must start with /memories, got: memories/a", true},
		{call{"command": "create", "path": "/memories/../b", "file_text": "x"},
			"Error: Path /memories/../b would escape /memories directory", true},
		{call{"command": "rename", "old_path": "/memories/b/a.md", "new_path": "/memories/../../b"},
			"Error: Path /memories/../../b would escape /memories directory", true},
		{call{"command": "create", "path": "/memories/b"},
			"Error: Missing `file_text` parameter of the command create", true},
		{call{"command": "insert", "path": "/memories/b", "insert_text": ""},
			"Error: Missing `insert_line` parameter of the command insert", true},
		{call{"command": "undo"}, "Error: Unknown command `undo`. The commands are: view, create, str_replace, insert, " +
			"delete, rename", true},
	} {
		r := m.Call(t.Context(), c.call.json())
		if r.Text != c.want || r.IsError != c.refused {
			t.Errorf("%d %s\nanswers %v\n%s\ninstead of %v\n%s", i, c.call.json(), r.IsError, r.Text, c.refused, c.want)
		}
		switch err := r.Err(); {
		case !c.refused && err != nil, c.refused && err.Error() != strings.TrimPrefix(c.want, "Error: "):
			t.Errorf("%d %s: error %v", i, c.call.json(), err)
		}
	}
}

// TestBadInput: what no call has is refused in words.
func TestBadInput(t *testing.T) {
	t.Parallel()
	_, m := tool(t, memorytool.Options{})
	for _, c := range []struct{ input, want string }{
		{"", "Invalid input"},
		{"[]", "Invalid input"},
		{"{}", "Unknown command"},
		{`{"command":"view","path":7}`, "Invalid input"},
		{`{"command":"view","path":null}`, "Missing `path`"},
		{`{"command":"view","path":"/memories/\u0007"}`, "control"},
		{`{"command":"view","path":"/memories/a//b"}`, "empty"},
		{`{"command":"view","path":"/memories/./b"}`, "empty, . and .. segments"},
		{`{"command":"view","path":"/memories/a","view_range":[1]}`, "array of two integers"},
		{`{"command":"view","path":"/memories/a","view_range":[1,2.5]}`, "array of two integers"},
		{`{"command":"insert","path":"/memories/a","insert_line":1.5,"insert_text":""}`, "not an integer"},
		{`{"command":"insert","path":"/memories/a","insert_line":1e99,"insert_text":""}`, "not an integer"},
		{`{"command":"create","path":"/memories/` + strings.Repeat("d/", 20) + `f","file_text":""}`, "20 segments"},
		{`{"command":"create","path":"/memories/` + strings.Repeat("d", 1100) + `","file_text":""}`, "1024 bytes"},
		{`{"command":"create","path":"/memories/big","file_text":"` + strings.Repeat("x", 16<<20+1) + `"}`, "16777216 bytes"},
	} {
		r := m.Call(t.Context(), []byte(c.input))
		if !r.IsError || !strings.HasPrefix(r.Text, "Error: ") || !strings.Contains(r.Text, c.want) {
			t.Errorf("%.80s: %v %q", c.input, r.IsError, r.Text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := m.Call(ctx, call{"command": "view", "path": "/memories/x"}.json()); !errors.Is(r.Err(), context.Canceled) {
		t.Errorf("%+v", r)
	}
	if _, err := memorytool.New(varve.Notes{}, memorytool.Options{Folder: "../x"}); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
}

// TestOverwrite: what create overwrites, where that is permitted, stays in the history.
func TestOverwrite(t *testing.T) {
	t.Parallel()
	st, m := tool(t, memorytool.Options{Overwrite: true})
	for _, text := range []string{"one", "two"} {
		if r := m.Call(t.Context(), call{"command": "create", "path": "/memories/a", "file_text": text}.json()); r.IsError {
			t.Fatal(r.Text)
		}
	}
	var kept []string
	for v, err := range st.Notes().History(t.Context(), "a") {
		must(t, err)
		kept = append(kept, string(v.Document))
	}
	if fmt.Sprint(kept) != "[one two]" {
		t.Error(kept)
	}
}

// TestViews: long files, long lines, other bytes than text, images, names in form D.
func TestViews(t *testing.T) {
	t.Parallel()
	st, m := tool(t, memorytool.Options{})
	write := func(path, text string) {
		_, err := st.Notes().Write(t.Context(), path, []byte(text))
		must(t, err)
	}
	view := func(path string, r ...int) memorytool.Result {
		c := call{"command": "view", "path": "/memories/" + path}
		if r != nil {
			c["view_range"] = r
		}
		return m.Call(t.Context(), c.json())
	}
	write("long", strings.Repeat("äöü\n", 5000))
	r := view("long")
	if n := len([]rune(r.Text)); r.IsError || n > 16_200 || n < 15_800 ||
		!strings.HasSuffix(r.Text, "The file has 5000 lines; to see the rest, use view_range [1455, -1].") {
		t.Errorf("%d characters, %.200q", n, r.Text[len(r.Text)-200:])
	}
	if r := view("long", 4999, -1); !strings.HasSuffix(r.Text, "numbers:\n  4999\täöü\n  5000\täöü") {
		t.Error(r.Text)
	}
	write("wide", strings.Repeat("ä", 20_000)+"\nnext")
	if r := view("wide", 1, 1); !strings.HasSuffix(r.Text, "longer than 16000 characters, and is not shown whole.") {
		t.Error(len(r.Text))
	}
	if r := view("wide"); !strings.HasSuffix(r.Text, "The file has 2 lines; to see the rest, use view_range [2, -1].") {
		t.Error(len(r.Text))
	}
	write("other", "a\xff\r\n\x00b")
	if r := view("other"); r.IsError || !strings.Contains(r.Text, "     1\ta\uFFFD\r\n     2\t\x00b\n") ||
		!strings.Contains(r.Text, "not UTF-8") {
		t.Errorf("%q", r.Text)
	}
	write("lines", strings.Repeat("\n", 999_999))
	if r := view("lines", 999_999, -1); r.IsError {
		t.Error(r.Text)
	}
	write("lines", strings.Repeat("\n", 1_000_000))
	if r := view("lines", 1, 2); !r.IsError ||
		r.Text != "File /memories/lines exceeds maximum line limit of 999,999 lines." {
		t.Error(r.Text)
	}
	write("i.png", "\x89PNG\r\n\x1a\nrest")
	if r := view("i.png"); r.IsError || r.Image == nil || r.Image.MediaType != "image/png" || len(r.Image.Data) != 12 {
		t.Errorf("%+v", r)
	}
	c := call{"command": "create", "path": "/memories/cafe\u0301.md", "file_text": "x"} // as a Mac has it
	if r := m.Call(t.Context(), c.json()); r.IsError {
		t.Error(r.Text)
	}
	if r := view("caf\u00e9.md"); r.IsError {
		t.Error(r.Text)
	}
	for size, want := range map[int]string{1: "1B", 1023: "1023B", 1024: "1K", 1536: "1.5K", 1<<20 - 1: "1024.0K",
		1 << 20: "1M", 5 << 18: "1.2M"} {
		write("sized/f", strings.Repeat("x", size))
		if r := view("sized"); !strings.Contains(r.Text, "\n"+want+"\t/memories/sized/f") {
			t.Error(size, r.Text)
		}
	}
}

// TestFolder: a tool sees no note outside of its folder.
func TestFolder(t *testing.T) {
	t.Parallel()
	st, m := tool(t, memorytool.Options{Folder: "a"})
	for _, path := range []string{"a/in", "ab/out", "out"} {
		_, err := st.Notes().Write(t.Context(), path, []byte("x"))
		must(t, err)
	}
	if r := m.Call(t.Context(), call{"command": "view", "path": "/memories"}.json()); strings.Count(r.Text, "\n") != 2 {
		t.Error(r.Text)
	}
}

// TestEditByHand: a command sees what was last written to the disk.
func TestEditByHand(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "storage")
	st := opened(t, dir)
	m, err := memorytool.New(st.Notes(), memorytool.Options{})
	must(t, err)
	m.Call(t.Context(), call{"command": "create", "path": "/memories/a.md", "file_text": "one\n"}.json())
	must(t, st.Flush(t.Context()))
	must(t, os.WriteFile(filepath.Join(dir, "notes", "a.md"), []byte("one\ntwo by hand\n"), 0o600))
	r := m.Call(t.Context(),
		call{"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "1"}.json())
	n, err := st.Notes().Read(t.Context(), "a.md")
	must(t, err)
	if r.IsError || string(n.Content) != "1\ntwo by hand\n" {
		t.Errorf("%+v %q", r, n.Content)
	}
}

const rounds = 40

// replacing counts the number up that is behind the name of this process in the note, rounds times.
func replacing(ctx context.Context, arg, dir string) error {
	return working(ctx, dir, func(m *memorytool.Tool, i int) error {
		return m.Call(ctx, call{"command": "str_replace", "path": "/memories/shared.md",
			"old_str": fmt.Sprintf("%s: %d\n", arg, i), "new_str": fmt.Sprintf("%s: %d\n", arg, i+1)}.json()).Err()
	})
}

// inserting inserts a line at the beginning, rounds times.
func inserting(ctx context.Context, arg, dir string) error {
	return working(ctx, dir, func(m *memorytool.Tool, i int) error {
		return m.Call(ctx, call{"command": "insert", "path": "/memories/shared.md", "insert_line": 0,
			"insert_text": fmt.Sprintf("%s line %d\n", arg, i)}.json()).Err()
	})
}

func working(ctx context.Context, dir string, f func(m *memorytool.Tool, i int) error) error {
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	m, err := memorytool.New(st.Notes(), memorytool.Options{})
	for i := 0; i < rounds && err == nil; i++ {
		err = f(m, i)
	}
	return errors.Join(err, st.Close())
}

// TestProcessesEditOneNote: each edit of three processes that edit one note at once is in it.
func TestProcessesEditOneNote(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "storage")
	st := opened(t, dir)
	m, err := memorytool.New(st.Notes(), memorytool.Options{})
	must(t, err)
	create := call{"command": "create", "path": "/memories/shared.md", "file_text": "a: 0\nb: 0\n"}
	if r := m.Call(t.Context(), create.json()); r.IsError {
		t.Fatal(r.Text)
	}
	var wait []func() error
	for _, job := range []string{"replacing:a", "replacing:b", "appending:c"} {
		cmd, _ := storetest.Start(t, job, dir)
		wait = append(wait, cmd.Wait)
	}
	for _, w := range wait {
		must(t, w())
	}
	n, err := st.Notes().Read(t.Context(), "shared.md")
	must(t, err)
	text := string(n.Content)
	if strings.Count(text, "c line ") != rounds ||
		!strings.HasSuffix(text, fmt.Sprintf("a: %d\nb: %d\n", rounds, rounds)) {
		t.Error(text)
	}
	versions := 0
	for _, err := range st.Notes().History(t.Context(), "shared.md") {
		must(t, err)
		versions++
	}
	if versions != 3*rounds+1 {
		t.Errorf("%d versions", versions)
	}
	// Of two that replace the same text, the second is told that it is gone.
	second := call{"command": "str_replace", "path": "/memories/shared.md", "old_str": fmt.Sprintf("a: %d", rounds),
		"new_str": "a: done"}
	if r := m.Call(t.Context(), second.json()); r.IsError {
		t.Error(r.Text)
	}
	var match *varve.MatchError
	if r := m.Call(t.Context(), second.json()); !r.IsError || !errors.As(r.Cause, &match) {
		t.Error(r.Text)
	}
}
