-- Links between pages of the source tree become links between pages of the site, which lie in one folder.
local function here(target)
  if target:match("^%a+:") or target:match("^#") then return target end
  target = target:gsub("^%./", ""):gsub("^%.%./", ""):gsub("^docs/", "")
  target = target:gsub("^measurements/", "measurements-")
  return (target:gsub("%.md$", ".html"):gsub("%.md#", ".html#"))
end

function Link(link)
  link.target = here(link.target)
  return link
end

function Image(image)
  image.src = here(image.src)
  return image
end
