/* A button beside each block of code that copies it */
"use strict"

for (const box of document.querySelectorAll("article div.highlight")) {
  if (box.closest(".cell_output, .output")) continue
  const button = document.createElement("button")
  Object.assign(button, {className: "copy", type: "button", textContent: "Copy"})
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(box.querySelector("pre").textContent.trimEnd())
    button.textContent = "Copied"
    setTimeout(() => button.textContent = "Copy", 1500)
  })
  box.append(button)
}
