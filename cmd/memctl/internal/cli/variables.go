package cli

// Variable is an environment variable that memctl reads.
type Variable struct{ Name, Text string }

// Variables returns all environment variables that memctl reads, for the reference and the manual.
func Variables() []Variable {
	return []Variable{
		{StoreVariable, "the store, if --store does not name one"},
		{AgentVariable, "the agent for which memctl writes; history and log show it"},
		{SessionVariable, "the session of that agent; history and log show it"},
		{"VARVE_EMBED_URL", "the URL of the embedding service; without it, no service is used"},
		{"VARVE_EMBED_MODEL", "the name of the embedding model"},
		{"VARVE_EMBED_KEY", "the key of the embedding service, if it requires one"},
		{"VARVE_EMBED_DIMENSIONS", "the number of dimensions that the service is to return"},
		{"OPENAI_API_KEY", "the key for OpenAI's own service, used if VARVE_EMBED_KEY is not set"},
		{"MEMORY_FILE_PATH", "memctl mcp only: the file of the memory server that memctl replaces"},
		{"VARVE_PROJECT", "memctl mcp only: the project, if --project does not name one"},
		{"XDG_DATA_HOME", "memctl mcp only: the folder below which the default store is; used if neither a flag nor " +
			"another variable names a store"},
		{"XDG_STATE_HOME", "the folder below which memctl keeps the key that identifies repairs, the ids of " +
			"projects, and places and keys of copies"},
		{"XDG_CONFIG_HOME", "memctl service only: the folder below which the systemd units of the user are"},
		{"SOURCE_DATE_EPOCH", "memctl manual only: the date of the pages, in Unix seconds"},
		{"VISUAL, EDITOR", "the editor of memctl edit"},
		{"BROWSER", "memctl ui only: the program that opens the page, with its arguments"},
		{"NO_COLOR", "if set, memctl prints no colors"},
	}
}
