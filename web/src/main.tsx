import "./styles/tokens.css";
import "./styles/base.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { begin } from "./session/session";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
void begin();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
