// Package memorytool answers the calls of Anthropic's memory tool, of type memory_20250818, with the notes of a
// store as its files.
//
//	tool, err := memorytool.New(st.Notes(), memorytool.Options{Folder: "agents/ada"})
//	…
//	result := tool.Call(ctx, block.Input) // of a tool_use block with the name memory
//	// the tool_result block has result.Text, and is_error where result.IsError
//
// The package takes the JSON of a call, and depends on no client of the API. examples/memorytool connects it to
// the tool runner of anthropic-sdk-go.
//
// # Commands
//
// The texts of the answers are those of the documentation of the tool:
//
//	view         path, view_range    a file with line numbers, or a folder two levels deep with sizes
//	create       path, file_text     refused where there is a file, unless Options.Overwrite is set
//	str_replace  path, old_str, new_str   old_str must occur once; without new_str it is deleted
//	insert       path, insert_line, insert_text   behind that line; 0 is the beginning
//	delete       path                a file, or a folder with all files in it
//	rename       old_path, new_path  a file or a folder; refused where there is something at new_path
//
// The path /memories is the folder of Options, and /memories/a/b.md the note a/b.md in it. Any other path is
// refused, and so are empty, . and .. segments. A path is brought into Unicode's normal form C.
//
// # What the documentation leaves open
//
// A line ends with its line break: a file of "a\n" has one line, and an empty file none. Occurrences of old_str
// may overlap, and each counts. The size of a folder is that of the files in it.
//
// The API tells the model that create overwrites, that a view has at most 16,000 characters and that images can
// be viewed. Options.Overwrite permits the first; the history of the note keeps what was overwritten. A view
// ends after the last line that fits into Options.ViewLimit, and names the view_range of the rest. The view of
// an image is in Result.Image.
//
// Bytes that are not UTF-8 are shown as U+FFFD, and the view says that they are unchanged in the file.
//
// # Concurrent calls
//
// Each command is one commit, made from the newest content of the note. If two processes edit a note at once,
// the second edits what the first has written, or gets the answer that old_str does not occur any more. A tool
// runner may execute the calls of one message at the same time, in any order. A Tool may be used by several
// goroutines.
package memorytool
