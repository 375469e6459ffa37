package cli

// Variable is an environment variable that memctl reads.
type Variable struct{ Name, Text string }

// Variables returns all environment variables that memctl reads, for the reference and the manual.
func Variables() []Variable {
	return []Variable{
		{StoreVariable, "the store, if --store does not name one"},
		{AgentVariable, "the agent for which memctl writes; history and log show it"},
		{SessionVariable, "the session of that agent, likewise"},
		{"VARVE_EMBED_URL", "the embedding service; none is asked without it"},
		{"VARVE_EMBED_MODEL", "the name of the model there"},
		{"VARVE_EMBED_KEY", "the key, if the service wants one"},
		{"VARVE_EMBED_DIMENSIONS", "how many dimensions to ask for"},
		{"OPENAI_API_KEY", "the key of OpenAI's own service, if VARVE_EMBED_KEY is not set"},
		{"MEMORY_FILE_PATH", "memctl mcp only: the file of the server that it replaces"},
		{"VARVE_PROJECT", "memctl mcp only: the project, if --project does not name one"},
		{"XDG_DATA_HOME", "memctl mcp only: below it is the store, if no other variable and no flag names one"},
		{"XDG_STATE_HOME", "below it are the key that identifies repairs made here and the ids of projects"},
		{"XDG_CONFIG_HOME", "memctl service only: below it are the units of the user"},
		{"SOURCE_DATE_EPOCH", "memctl manual only: the date of the pages, in Unix seconds"},
		{"VISUAL, EDITOR", "the editor of memctl edit"},
		{"BROWSER", "memctl ui only: the program that opens the page, with its arguments"},
		{"NO_COLOR", "if set, no colours"},
	}
}
