package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/memorytool"
)

// notesRoot is the path that the tool memory shows for the folder of notes.
const notesRoot = "/memories"

// noteTools returns the tool of the group notes. It has the name, commands and answers of the tool in package
// memorytool, which models know, and the additional argument scope.
func noteTools() []tool {
	plain, line := str(""), integer("", -1, 1<<31-1)
	return []tool{{
		"memory", "",
		"Files below " + notesRoot + " that outlive the conversation. view: path, view_range. create: path, file_text. " +
			"str_replace: path, old_str, new_str. insert: path, insert_line, insert_text. delete: path. rename: old_path, " +
			"new_path.",
		object(
			needs("command", oneOf("", "view", "create", "str_replace", "insert", "delete", "rename")),
			may("path", str(notesRoot+"/…")), may("view_range", array(line).described("first and last line; -1: the end")),
			may("file_text", plain), may("old_str", str("occurs once")), may("new_str", plain),
			may("insert_line", integer("behind this line; 0: the beginning", 0, 1<<31-1)), may("insert_text", plain),
			may("old_path", plain), may("new_path", plain),
			may("scope", oneOf("user: files shared by all projects", "project", "user"))).markClosed(),
		nil, hints{destructive: true}, runNotes,
	}}
}

// runNotes answers a call of the tool memory. It uses the notes of the client's project, or, if the call says so, the
// notes that all projects share.
func runNotes(ctx context.Context, s *server, a args) (*answer, error) {
	var of Project
	told := ""
	if c, _ := ctx.Value(callerKey{}).(*caller); c != nil {
		of, told = c.of(), c.news()
	}
	o := memorytool.Options{Folder: project.NotesOf(of.ID)}
	if a.text("scope") == "user" || of.ID == "" {
		o = memorytool.Options{Except: project.NotesFolder}
	}
	delete(a, "scope")
	input, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	t, err := memorytool.New(s.st.Notes(), o)
	if err != nil {
		return nil, err
	}
	r := t.Call(ctx, input)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if told != "" {
		r.Text = told + "\n" + r.Text
	}
	out := textAnswer(r.Text, nil)
	if r.Image != nil {
		out.image = &mcp.ImageContent{MIMEType: r.Image.MediaType, Data: r.Image.Data}
	}
	return out, nil
}

// notePath returns the path of a note in the form of the tool memory; for a note that all projects share, it
// adds the scope.
func (c *memoryCall) notePath(path string) string {
	if rest, ok := strings.CutPrefix(path, project.NotesOf(c.project.ID)+"/"); ok && c.project.ID != "" {
		return notesRoot + "/" + rest
	}
	if c.project.ID == "" {
		return notesRoot + "/" + path
	}
	return fmt.Sprintf("%s/%s (scope user)", notesRoot, path)
}
