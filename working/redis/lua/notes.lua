-- An entry of the scratchpad is <sequence, 20 digits>:<time>:<text>; its name in a
-- checkpoint is n<sequence>.
local function noteName(member) return 'n' .. string.sub(member, 1, 20) end

local function trim(n)
  if n <= 0 then return end
  for _, member in ipairs(call('ZRANGE', NOTES, 0, n - 1)) do soil(noteName(member)) end
  call('ZREMRANGEBYRANK', NOTES, 0, n - 1)
end
