// Tables that are wider than a screen are scrolled by keys, too.
document$.subscribe(() => {
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap")) each.tabIndex = 0
})
